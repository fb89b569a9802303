/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads a firmware image as a card loads its flash: copied first, checked, and replaceable while QEMU runs. */
#include "qemu/osdep.h"
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include "qapi/error.h"
#include "qemu/memalign.h"
#include "netdam_device.h"
#include "trace.h"

#define NETDAM_IMAGE_MAX (64u << 20)

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

static int netdam_image_memfd(void)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create("netdam-fw.so", flags | MFD_EXEC);

    if (fd < 0 && errno == EINVAL) {
        fd = memfd_create("netdam-fw.so", flags);
    }
    return fd;
}

/*
 * The loader believes the headers of what it maps, and a page beyond the end of the file is SIGBUS. An image that a
 * linker is just writing must not take the machine down: every part that the headers name has to be there.
 */
static bool netdam_image_is_whole(const uint8_t *file, size_t bytes)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) program;
    size_t i;

    if (bytes < sizeof(header)) {
        return false;
    }
    memcpy(&header, file, sizeof(header));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(program) || header.e_phnum == 0 ||
        header.e_phoff > bytes || header.e_phnum > (bytes - header.e_phoff) / sizeof(program)) {
        return false;
    }
    /* Linkers write the section headers last and at the end. */
    if (header.e_shoff > bytes || (uint64_t)header.e_shnum * header.e_shentsize > bytes - header.e_shoff) {
        return false;
    }
    for (i = 0; i < header.e_phnum; i++) {
        memcpy(&program, file + header.e_phoff + i * sizeof(program), sizeof(program));
        if (program.p_filesz != 0 && (program.p_offset > bytes || program.p_filesz > bytes - program.p_offset)) {
            return false;
        }
    }
    return true;
}

/* Returns the file's bytes, for g_free. */
static uint8_t *netdam_image_read(const char *path, size_t *bytes, Error **errp)
{
    /* Not to hang on a FIFO, which is then refused as not being a file. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    uint8_t *file = NULL;
    struct stat st;
    size_t done = 0;

    if (fd < 0 || fstat(fd, &st) != 0) {
        error_setg_errno(errp, errno, "netdam: cannot read firmware '%s'", path);
    } else if (!S_ISREG(st.st_mode)) {
        error_setg(errp, "netdam: firmware '%s' is not a file", path);
    } else if (st.st_size == 0 || st.st_size > NETDAM_IMAGE_MAX) {
        error_setg(errp, "netdam: firmware '%s' has an impossible size, %lld bytes", path, (long long)st.st_size);
    } else {
        file = g_malloc(st.st_size);
        while (done < (size_t)st.st_size) {
            ssize_t got = read(fd, file + done, st.st_size - done);

            if (got < 0 && errno == EINTR) {
                continue;
            }
            if (got <= 0) {
                break;
            }
            done += got;
        }
        if (done != (size_t)st.st_size || !netdam_image_is_whole(file, done)) {
            error_setg(errp, "netdam: firmware '%s' is not a whole shared object of this machine", path);
            g_free(file);
            file = NULL;
        }
        *bytes = done;
    }
    if (fd >= 0) {
        close(fd);
    }
    return file;
}

/*
 * Overwriting a file that is mapped is SIGBUS, and opening a name that is open already yields what was loaded under it.
 * So each image is a copy that nobody can change, under a name of its own: the descriptor stays open as long as the
 * image is loaded, and no other one gets its number meanwhile. The process id in the name, instead of "self", lets a
 * debugger on the same machine find the symbols.
 */
static bool netdam_image_copy(NetdamImage *image, const char *path, Error **errp)
{
    g_autofree uint8_t *file = NULL;
    g_autofree char *copy = NULL;
    size_t bytes = 0;

    file = netdam_image_read(path, &bytes, errp);
    if (!file) {
        return false;
    }
    image->fd = netdam_image_memfd();
    if (image->fd < 0 || qemu_write_full(image->fd, file, bytes) != (ssize_t)bytes) {
        error_setg_errno(errp, errno, "netdam: cannot copy firmware '%s'", path);
        return false;
    }
    /* Where sealing is not possible the copy is as good: nobody else has it. */
    (void)fcntl(image->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    copy = g_strdup_printf("/proc/%d/fd/%d", (int)getpid(), image->fd);
    image->handle = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    if (!image->handle) {
        error_setg(errp, "netdam: cannot load firmware '%s': %s", path, dlerror());
        return false;
    }
    return true;
}

static bool netdam_image_check(NetdamImage *image, const char *path, const struct netdam_fw_config *config,
                               Error **errp)
{
    const struct netdam_fw_ops *(*entry)(void);
    const char *reason = NULL;
    size_t bytes;

    *(void **)&entry = dlsym(image->handle, NETDAM_FW_ENTRY);
    image->ops = entry ? entry() : NULL;
    if (!image->ops) {
        error_setg(errp, "netdam: firmware '%s' does not export " NETDAM_FW_ENTRY, path);
        return false;
    }
    if (image->ops->abi_version != NETDAM_FW_ABI_VERSION) {
        error_setg(errp, "netdam: firmware '%s' has ABI version %u, this device needs %u", path,
                   image->ops->abi_version, NETDAM_FW_ABI_VERSION);
        return false;
    }
    if (image->ops->ops_bytes != sizeof(*image->ops)) {
        error_setg(errp, "netdam: firmware '%s' has an operations table of %u bytes, this device needs %zu", path,
                   image->ops->ops_bytes, sizeof(*image->ops));
        return false;
    }
    bytes = image->ops->state_bytes(config, &reason);
    if (bytes == 0) {
        error_setg(errp, "netdam: firmware '%s' refuses the configuration: %s", path, reason ?: "no reason given");
        return false;
    }
    image->state = qemu_try_memalign(64, ROUND_UP(bytes, 64));
    if (!image->state) {
        error_setg(errp, "netdam: no memory for the %zu bytes that firmware '%s' needs", bytes, path);
        return false;
    }
    memset(image->state, 0, bytes);
    return true;
}

bool netdam_image_load(NetdamImage *image, const char *path, const struct netdam_fw_config *config, const char *name,
                       Error **errp)
{
    NetdamImage loaded = {.fd = -1};
    struct link_map *map = NULL;

    if (!netdam_image_copy(&loaded, path, errp) || !netdam_image_check(&loaded, path, config, errp)) {
        netdam_image_unload(&loaded);
        return false;
    }
    (void)dlinfo(loaded.handle, RTLD_DI_LINKMAP, &map);
    trace_netdam_image_load(name, path, loaded.ops->name ?: "", loaded.ops->firmware_version >> 16,
                            loaded.ops->firmware_version & 0xffff, map ? (uint64_t)map->l_addr : 0);
    *image = loaded;
    return true;
}

void netdam_image_unload(NetdamImage *image)
{
    qemu_vfree(image->state);
    if (image->handle) {
        dlclose(image->handle);
    }
    if (image->fd > 0) {
        close(image->fd);
    }
    *image = (NetdamImage){.fd = -1};
}
