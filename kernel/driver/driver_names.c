/* SPDX-License-Identifier: MIT */
/* Devices and symbolic links. names_mutex guards both lists. NT: the object manager's folders are a
 * fixed table, \DosDevices, \?? and \GLOBAL?? are one, and letters are compared in any case. */
#include "kernel/base/bits.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/driver/pool.h"
#include "kernel/ke/mutex.h"

#define LINKS_FOLLOWED 8

/* A full name: a folder of the table below, and what follows it. */
struct place {
    unsigned folder;
    UNICODE_STRING name;
};

struct device {
    DEVICE_OBJECT object;
    LIST_ENTRY list;
    struct place place; /* name.Buffer NULL: it has no name */
    uint64_t where;     /* who created it */
    bool deleted;       /* freed with the last reference */
} __attribute__((aligned(16)));

struct link {
    LIST_ENTRY list;
    struct place place;
    UNICODE_STRING target;
    uint64_t where;
};

static struct mutex names_mutex = MUTEX("device names");
static LIST_ENTRY devices = { &devices, &devices }; /* L: names_mutex */
static LIST_ENTRY links = { &links, &links };       /* L: names_mutex */

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
/* The root, the last, is what every full name begins with. */
static const UNICODE_STRING folders[] = {
    TEXT(u"\\??\\"),
    TEXT(u"\\DosDevices\\"),
    TEXT(u"\\GLOBAL??\\"),
    TEXT(u"\\Device\\"),
    TEXT(u"\\Driver\\"),
    TEXT(u"\\FileSystem\\"),
    TEXT(u"\\BaseNamedObjects\\"),
    TEXT(u"\\Callback\\"),
    TEXT(u"\\KernelObjects\\"),
    TEXT(u"\\"),
};
#define LAST_OF_LINKS 2u /* the first is one with those up to here */

static bool begins_with(const UNICODE_STRING *name, const UNICODE_STRING *start)
{
    const UNICODE_STRING same = { start->Length, start->Length, name->Buffer };
    return name->Length >= start->Length && text_equal(&same, start, true);
}

static UNICODE_STRING without_prefix(UNICODE_STRING name, USHORT length)
{
    return (UNICODE_STRING){ (USHORT)(name.Length - length), (USHORT)(name.Length - length),
                             name.Buffer + length / sizeof(WCHAR) };
}

/* The status of an open; a new object's needs a name without folders, too (new_place). */
static NTSTATUS find_named_place(const UNICODE_STRING *name, struct place *place)
{
    unsigned i = 0;
    while (i < ARRAY_SIZE(folders) && !begins_with(name, &folders[i]))
        i++;
    if (i == ARRAY_SIZE(folders))
        return STATUS_OBJECT_PATH_SYNTAX_BAD;
    *place = (struct place){ i > LAST_OF_LINKS ? i : 0, without_prefix(*name, folders[i].Length) };
    return place->name.Length ? STATUS_SUCCESS : STATUS_OBJECT_NAME_INVALID;
}

/* STATUS_OBJECT_PATH_SYNTAX_BAD: not a full name; STATUS_OBJECT_NAME_INVALID: a folder's;
 * STATUS_OBJECT_PATH_NOT_FOUND: in a folder that does not exist. */
static NTSTATUS new_place(const UNICODE_STRING *name, struct place *place)
{
    NTSTATUS status = find_named_place(name, place);
    for (unsigned i = 0; NT_SUCCESS(status) && i < place->name.Length / sizeof(WCHAR); i++)
        if (place->name.Buffer[i] == '\\')
            status = STATUS_OBJECT_PATH_NOT_FOUND;
    return status;
}

/* Whether `place` is what is named there, or continues it with a folder or file. */
static bool names_or_leads(const struct place *there, const struct place *place)
{
    const UNICODE_STRING *whole = &there->name, *name = &place->name;
    return whole->Length && there->folder == place->folder && begins_with(name, whole) &&
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

static bool copy_place(struct place *to, const struct place *from)
{
    to->folder = from->folder;
    return copy_string(&to->name, &from->name);
}

static struct device *find_device(const struct place *place)
{
    for (const LIST_ENTRY *e = devices.Flink; e != &devices; e = e->Flink)
        if (!device_of_entry(e)->deleted && names_or_leads(&device_of_entry(e)->place, place))
            return device_of_entry(e);
    return NULL;
}

static struct link *find_link(const struct place *place)
{
    for (const LIST_ENTRY *e = links.Flink; e != &links; e = e->Flink) {
        struct link *l = CONTAINING_RECORD(e, struct link, list);
        if (names_or_leads(&l->place, place))
            return l;
    }
    return NULL;
}

/* Follows links to a device; `rest`: what follows the first name. */
static struct device *follow_name(const UNICODE_STRING *name, UNICODE_STRING *rest,
                                  NTSTATUS *status)
{
    const UNICODE_STRING *at = name;
    for (unsigned i = 0; i < LINKS_FOLLOWED; i++) {
        struct place place;
        *status = find_named_place(at, &place);
        if (!NT_SUCCESS(*status))
            return NULL;
        struct link *link = find_link(&place);
        struct device *device = link ? NULL : find_device(&place);
        if (at == name && (link || device))
            *rest = without_prefix(place.name, (link ? &link->place : &device->place)->name.Length);
        if (!link && device)
            return device;
        if (!link)
            break;
        at = &link->target;
    }
    *status = STATUS_OBJECT_NAME_NOT_FOUND;
    return NULL;
}

PDEVICE_OBJECT device_open(const UNICODE_STRING *name, UNICODE_STRING *rest, NTSTATUS *status)
{
    *rest = (UNICODE_STRING){ 0, 0, NULL };
    mutex_acquire(&names_mutex);
    struct device *device = follow_name(name, rest, status);
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
    if (device->place.name.Buffer)
        pool_free(device->place.name.Buffer);
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

/* Statuses of new_place; STATUS_OBJECT_NAME_COLLISION; STATUS_INSUFFICIENT_RESOURCES. Without
 * DeviceName, or with an empty one, the device has no name. */
NTSTATUS IoCreateDevice(PDRIVER_OBJECT DriverObject, ULONG DeviceExtensionSize,
                        PUNICODE_STRING DeviceName, ULONG DeviceType, ULONG DeviceCharacteristics,
                        BOOLEAN Exclusive, PDEVICE_OBJECT *DeviceObject)
{
    const bool named = DeviceName && DeviceName->Length;
    struct place place;
    NTSTATUS status = named ? new_place(DeviceName, &place) : STATUS_SUCCESS;
    if (!NT_SUCCESS(status))
        return status;
    struct device *device = make_device(DriverObject, DeviceExtensionSize, DeviceType,
                                        DeviceCharacteristics, Exclusive);
    if (!device)
        return STATUS_INSUFFICIENT_RESOURCES;
    mutex_acquire(&names_mutex);
    InsertTailList(&devices, &device->list);
    if (named && (find_device(&place) || find_link(&place)))
        status = STATUS_OBJECT_NAME_COLLISION;
    else if (named && !copy_place(&device->place, &place))
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

/* Statuses of IoCreateDevice. NT: there is no security: the descriptor has no effect. */
NTSTATUS IoCreateDeviceSecure(PDRIVER_OBJECT DriverObject, ULONG DeviceExtensionSize,
                              PUNICODE_STRING DeviceName, ULONG DeviceType,
                              ULONG DeviceCharacteristics, BOOLEAN Exclusive, PUNICODE_STRING,
                              const void *, PDEVICE_OBJECT *DeviceObject)
{
    return IoCreateDevice(DriverObject, DeviceExtensionSize, DeviceName, DeviceType,
                          DeviceCharacteristics, Exclusive, DeviceObject);
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
    if (link->place.name.Buffer)
        pool_free(link->place.name.Buffer);
    if (link->target.Buffer)
        pool_free(link->target.Buffer);
    pool_free(link);
}

/* Statuses of new_place; STATUS_OBJECT_NAME_COLLISION; STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS IoCreateSymbolicLink(PUNICODE_STRING SymbolicLinkName, PUNICODE_STRING DeviceName)
{
    struct place place;
    NTSTATUS status = new_place(SymbolicLinkName, &place);
    if (!NT_SUCCESS(status))
        return status;
    struct link *link = pool_allocate(sizeof *link);
    if (!link)
        return STATUS_INSUFFICIENT_RESOURCES;
    mutex_acquire(&names_mutex);
    bool taken = find_link(&place) || find_device(&place);
    link->where = driver_caller();
    InsertTailList(&links, &link->list);
    bool made =
        !taken && copy_place(&link->place, &place) && copy_string(&link->target, DeviceName);
    if (!made)
        free_link(link);
    mutex_release(&names_mutex);
    return made    ? STATUS_SUCCESS
           : taken ? STATUS_OBJECT_NAME_COLLISION
                   : STATUS_INSUFFICIENT_RESOURCES;
}

/* Statuses of find_named_place; STATUS_OBJECT_NAME_NOT_FOUND. */
NTSTATUS IoDeleteSymbolicLink(PUNICODE_STRING SymbolicLinkName)
{
    struct place place;
    NTSTATUS status = find_named_place(SymbolicLinkName, &place);
    if (!NT_SUCCESS(status))
        return status;
    mutex_acquire(&names_mutex);
    struct link *link = find_link(&place);
    if (link)
        free_link(link);
    mutex_release(&names_mutex);
    return link ? STATUS_SUCCESS : STATUS_OBJECT_NAME_NOT_FOUND;
}

/* --- At the end. --- */

static void name_left(struct driver *driver, const char *kind, const struct place *place)
{
    const UNICODE_STRING *parts[] = { &folders[place->folder], &place->name };
    char text[80];
    unsigned n = 0;
    for (unsigned part = 0; place->name.Length && part < 2; part++)
        for (unsigned i = 0; i < parts[part]->Length / sizeof(WCHAR) && n < sizeof text - 1; i++)
            text[n++] = parts[part]->Buffer[i] < 0x7f ? (char)parts[part]->Buffer[i] : '?';
    text[n] = 0;
    driver_left(driver, "%s %s", kind, n ? text : "without a name");
}

void devices_left(struct driver *driver)
{
    mutex_acquire(&names_mutex);
    for (const LIST_ENTRY *e = devices.Flink; e != &devices; e = e->Flink)
        if (driver_at(device_of_entry(e)->where) == driver)
            name_left(driver, "device", &device_of_entry(e)->place);
    for (const LIST_ENTRY *e = links.Flink; e != &links; e = e->Flink) {
        const struct link *l = CONTAINING_RECORD(e, struct link, list);
        if (driver_at(l->where) == driver)
            name_left(driver, "symbolic link", &l->place);
    }
    mutex_release(&names_mutex);
}
