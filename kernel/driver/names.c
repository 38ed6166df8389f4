/* SPDX-License-Identifier: MIT */
/* Devices and symbolic links. names_mutex guards both lists. NT: there are two folders, \Device and
 * \?? (which \DosDevices and \GLOBAL?? mean, too), and letters are compared in any case. */
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/driver/pool.h"
#include "kernel/ke/mutex.h"

#define LINKS_FOLLOWED 8

struct device {
    DEVICE_OBJECT object;
    LIST_ENTRY list;
    UNICODE_STRING name; /* Buffer NULL: none */
    uint64_t where;      /* who created it */
    bool deleted;        /* freed with the last reference */
} __attribute__((aligned(16)));

struct link {
    LIST_ENTRY list;
    UNICODE_STRING name, target;
    uint64_t where;
};

static struct mutex names_mutex = MUTEX("device names");
static LIST_ENTRY devices = { &devices, &devices }, links = { &links, &links };

static struct device *device_of_entry(const LIST_ENTRY *e)
{
    return CONTAINING_RECORD(e, struct device, list);
}
static struct device *device_of(PDEVICE_OBJECT o)
{
    return CONTAINING_RECORD(o, struct device, object);
}

/* --- Names. --- */

#define TEXT(s)                                                                                    \
    {                                                                                              \
        sizeof(s) - sizeof(WCHAR), sizeof(s), (WCHAR *)(s)                                         \
    }
static const UNICODE_STRING folders[] = { TEXT(u"\\??\\"), TEXT(u"\\DosDevices\\"),
                                          TEXT(u"\\GLOBAL??\\") };

static bool begins_with(const UNICODE_STRING *name, const UNICODE_STRING *folder)
{
    const UNICODE_STRING start = { folder->Length, folder->Length, name->Buffer };
    return name->Length >= folder->Length && text_equal(&start, folder, true);
}

static UNICODE_STRING without_prefix(UNICODE_STRING name, USHORT length)
{
    return (UNICODE_STRING){ (USHORT)(name.Length - length), (USHORT)(name.Length - length),
                             name.Buffer + length / sizeof(WCHAR) };
}

/* The name of a link without its folder; Length 0: it is in no folder for links. */
static UNICODE_STRING link_name(const UNICODE_STRING *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(folders); i++)
        if (begins_with(name, &folders[i]))
            return without_prefix(*name, folders[i].Length);
    return (UNICODE_STRING){ 0, 0, NULL };
}

/* Whether `name` is `whole`, or continues it with a folder or file. */
static bool names_or_leads(const UNICODE_STRING *whole, const UNICODE_STRING *name)
{
    return whole->Length && begins_with(name, whole) &&
           (name->Length == whole->Length || name->Buffer[whole->Length / sizeof(WCHAR)] == '\\');
}

static bool copy_string(UNICODE_STRING *to, const UNICODE_STRING *from)
{
    to->Buffer = pool_allocate(from->Length + sizeof(WCHAR));
    if (!to->Buffer)
        return false;
    memcpy(to->Buffer, from->Buffer, from->Length);
    to->Length = from->Length;
    to->MaximumLength = (USHORT)(from->Length + sizeof(WCHAR));
    return true;
}

static struct device *find_device(const UNICODE_STRING *name)
{
    for (const LIST_ENTRY *e = devices.Flink; e != &devices; e = e->Flink)
        if (!device_of_entry(e)->deleted && names_or_leads(&device_of_entry(e)->name, name))
            return device_of_entry(e);
    return NULL;
}

static struct link *find_link(const UNICODE_STRING *name)
{
    UNICODE_STRING bare = link_name(name);
    for (const LIST_ENTRY *e = links.Flink; e != &links; e = e->Flink) {
        struct link *l = CONTAINING_RECORD(e, struct link, list);
        if (names_or_leads(&l->name, &bare))
            return l;
    }
    return NULL;
}

PDEVICE_OBJECT device_open(const UNICODE_STRING *name, UNICODE_STRING *rest, NTSTATUS *status)
{
    const UNICODE_STRING *at = name;
    struct device *device = NULL;
    *rest = (UNICODE_STRING){ 0, 0, NULL };
    *status = STATUS_OBJECT_NAME_NOT_FOUND;
    mutex_acquire(&names_mutex);
    for (unsigned i = 0; i < LINKS_FOLLOWED && !device; i++) {
        struct link *link = find_link(at);
        if (link) {
            UNICODE_STRING bare = link_name(at);
            if (at == name)
                *rest = without_prefix(bare, link->name.Length);
            at = &link->target;
            continue;
        }
        device = find_device(at);
        if (!device)
            break;
        if (at == name)
            *rest = without_prefix(*at, device->name.Length);
    }
    if (device && (device->object.Flags & DO_DEVICE_INITIALIZING)) {
        *status = STATUS_NO_SUCH_DEVICE;
        device = NULL;
    } else if (device && (device->object.Flags & DO_EXCLUSIVE) && device->object.ReferenceCount) {
        *status = STATUS_ACCESS_DENIED;
        device = NULL;
    }
    if (device)
        device->object.ReferenceCount++;
    mutex_release(&names_mutex);
    return device ? &device->object : NULL;
}

/* --- Devices. --- */

static void free_device(struct device *device)
{
    RemoveEntryList(&device->list);
    if (device->name.Buffer)
        pool_free(device->name.Buffer);
    pool_free(device);
}

void device_close(PDEVICE_OBJECT object)
{
    struct device *device = device_of(object);
    mutex_acquire(&names_mutex);
    if (!--object->ReferenceCount && device->deleted)
        free_device(device);
    mutex_release(&names_mutex);
}

PDEVICE_OBJECT device_top(PDEVICE_OBJECT device)
{
    PDEVICE_OBJECT above;
    while ((above = __atomic_load_n(&device->AttachedDevice, __ATOMIC_ACQUIRE)))
        device = above;
    return device;
}

/* The device that was the highest until now, to which the new one passes requests on. NT: a request
 * that was made before has no stack location for the new device, and does not reach it. */
PDEVICE_OBJECT IoAttachDeviceToDeviceStack(PDEVICE_OBJECT SourceDevice, PDEVICE_OBJECT TargetDevice)
{
    PDEVICE_OBJECT lower = device_top(TargetDevice);
    SourceDevice->StackSize = (CHAR)(lower->StackSize + 1);
    SourceDevice->AlignmentRequirement = lower->AlignmentRequirement;
    __atomic_store_n(&lower->AttachedDevice, SourceDevice, __ATOMIC_RELEASE);
    return lower;
}

/* TargetDevice: what attaching returned. */
VOID IoDetachDevice(PDEVICE_OBJECT TargetDevice)
{
    __atomic_store_n(&TargetDevice->AttachedDevice, NULL, __ATOMIC_RELEASE);
}

static struct device *make_device(PDRIVER_OBJECT driver, ULONG extension, ULONG type,
                                  ULONG characteristics, bool exclusive)
{
    struct device *d = pool_allocate(sizeof *d + extension);
    if (!d)
        return NULL;
    d->where = driver_caller();
    d->object = (DEVICE_OBJECT){ .Type = IO_TYPE_DEVICE,
                                 .Size = (USHORT)(sizeof d->object + extension),
                                 .DriverObject = driver,
                                 .Flags = DO_DEVICE_INITIALIZING | (exclusive ? DO_EXCLUSIVE : 0),
                                 .Characteristics = characteristics,
                                 .DeviceExtension = extension ? d + 1 : NULL,
                                 .DeviceType = type,
                                 .StackSize = 1 };
    return d;
}

/* STATUS_OBJECT_NAME_INVALID: not in \Device; STATUS_OBJECT_NAME_COLLISION;
 * STATUS_INSUFFICIENT_RESOURCES. DeviceName may be NULL. */
NTSTATUS IoCreateDevice(PDRIVER_OBJECT DriverObject, ULONG DeviceExtensionSize,
                        PUNICODE_STRING DeviceName, ULONG DeviceType, ULONG DeviceCharacteristics,
                        BOOLEAN Exclusive, PDEVICE_OBJECT *DeviceObject)
{
    static const UNICODE_STRING folder = TEXT(u"\\Device\\");
    if (DeviceName && (!begins_with(DeviceName, &folder) || DeviceName->Length == folder.Length))
        return STATUS_OBJECT_NAME_INVALID;
    struct device *device = make_device(DriverObject, DeviceExtensionSize, DeviceType,
                                        DeviceCharacteristics, Exclusive);
    if (!device)
        return STATUS_INSUFFICIENT_RESOURCES;
    NTSTATUS status = STATUS_SUCCESS;
    mutex_acquire(&names_mutex);
    InsertTailList(&devices, &device->list);
    if (DeviceName && find_device(DeviceName))
        status = STATUS_OBJECT_NAME_COLLISION;
    else if (DeviceName && !copy_string(&device->name, DeviceName))
        status = STATUS_INSUFFICIENT_RESOURCES;
    if (NT_SUCCESS(status)) {
        device->object.NextDevice = DriverObject->DeviceObject;
        DriverObject->DeviceObject = *DeviceObject = &device->object;
    } else {
        free_device(device);
    }
    mutex_release(&names_mutex);
    return status;
}

VOID IoDeleteDevice(PDEVICE_OBJECT DeviceObject)
{
    struct device *device = device_of(DeviceObject);
    mutex_acquire(&names_mutex);
    PDEVICE_OBJECT *link = &DeviceObject->DriverObject->DeviceObject;
    while (*link && *link != DeviceObject)
        link = &(*link)->NextDevice;
    if (*link)
        *link = DeviceObject->NextDevice;
    device->deleted = true;
    if (!DeviceObject->ReferenceCount)
        free_device(device);
    mutex_release(&names_mutex);
}

void devices_initialized(struct driver *driver)
{
    mutex_acquire(&names_mutex);
    for (PDEVICE_OBJECT d = driver->object.DeviceObject; d; d = d->NextDevice)
        d->Flags &= ~(ULONG)DO_DEVICE_INITIALIZING;
    mutex_release(&names_mutex);
}

/* --- Links. --- */

static void free_link(struct link *link)
{
    RemoveEntryList(&link->list);
    if (link->name.Buffer)
        pool_free(link->name.Buffer);
    if (link->target.Buffer)
        pool_free(link->target.Buffer);
    pool_free(link);
}

/* STATUS_OBJECT_NAME_INVALID: in no folder for links; STATUS_OBJECT_NAME_COLLISION;
 * STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS IoCreateSymbolicLink(PUNICODE_STRING SymbolicLinkName, PUNICODE_STRING DeviceName)
{
    UNICODE_STRING bare = link_name(SymbolicLinkName);
    if (!bare.Length)
        return STATUS_OBJECT_NAME_INVALID;
    struct link *link = pool_allocate(sizeof *link);
    if (!link)
        return STATUS_INSUFFICIENT_RESOURCES;
    mutex_acquire(&names_mutex);
    bool taken = find_link(SymbolicLinkName);
    link->where = driver_caller();
    InsertTailList(&links, &link->list);
    bool made = !taken && copy_string(&link->name, &bare) && copy_string(&link->target, DeviceName);
    if (!made)
        free_link(link);
    mutex_release(&names_mutex);
    return made    ? STATUS_SUCCESS
           : taken ? STATUS_OBJECT_NAME_COLLISION
                   : STATUS_INSUFFICIENT_RESOURCES;
}

/* STATUS_OBJECT_NAME_NOT_FOUND. */
NTSTATUS IoDeleteSymbolicLink(PUNICODE_STRING SymbolicLinkName)
{
    mutex_acquire(&names_mutex);
    struct link *link = find_link(SymbolicLinkName);
    if (link)
        free_link(link);
    mutex_release(&names_mutex);
    return link ? STATUS_SUCCESS : STATUS_OBJECT_NAME_NOT_FOUND;
}

/* --- At the end. --- */

static void name_left(const struct driver *driver, const char *kind, const UNICODE_STRING *name)
{
    char text[64];
    unsigned n = 0;
    for (; n < name->Length / sizeof(WCHAR) && n < sizeof text - 1; n++)
        text[n] = name->Buffer[n] < 0x7f ? (char)name->Buffer[n] : '?';
    text[n] = 0;
    print("# %s left %s %s\n", driver->name, kind, n ? text : "without a name");
}

unsigned devices_left(const struct driver *driver)
{
    unsigned count = 0;
    for (const LIST_ENTRY *e = devices.Flink; e != &devices; e = e->Flink)
        if (driver_at(device_of_entry(e)->where) == driver) {
            name_left(driver, "device", &device_of_entry(e)->name);
            count++;
        }
    for (const LIST_ENTRY *e = links.Flink; e != &links; e = e->Flink) {
        const struct link *l = CONTAINING_RECORD(e, struct link, list);
        if (driver_at(l->where) == driver) {
            name_left(driver, "symbolic link", &l->name);
            count++;
        }
    }
    return count;
}
