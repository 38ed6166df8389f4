// SPDX-License-Identifier: MIT
// A Rust program counts a loop of its own, in this thread and in four at once: the kernel's driver
// configures the counter as in read.cpp, and each thread profiles itself.
use std::arch::asm;
use std::ffi::c_void;

#[repr(C)]
struct HardwareCounter {
    kind: u32,
    reserved: u32,
    index: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CounterData {
    kind: u32,
    reserved: u32,
    value: u64,
}

#[repr(C)]
#[derive(Default)]
struct PerformanceData {
    size: u16,
    version: u8,
    counters: u8,
    switches: u32,
    reasons: u64,
    cycles: u64,
    retries: u32,
    reserved: u32,
    data: [CounterData; 16],
}

type Configure = extern "system" fn(*const HardwareCounter, u32) -> i32;

#[link(name = "kernel32")]
extern "system" {
    fn LoadLibraryA(name: *const u8) -> *mut c_void;
    fn GetProcAddress(module: *mut c_void, name: *const u8) -> Option<Configure>;
    fn GetCurrentThread() -> *mut c_void;
    fn EnableThreadProfiling(thread: *mut c_void, flags: u32, counters: u64,
                             profile: *mut *mut c_void) -> u32;
    fn ReadThreadProfilingData(profile: *mut c_void, flags: u32, data: *mut PerformanceData) -> u32;
    fn DisableThreadProfiling(profile: *mut c_void) -> u32;
}

fn read(profile: *mut c_void) -> (u64, u32) {
    let size = std::mem::size_of::<PerformanceData>() as u16;
    let mut data = PerformanceData { size, version: 1, ..Default::default() };
    assert_eq!(unsafe { ReadThreadProfilingData(profile, 2, &mut data) }, 0);
    (data.data[0].value, data.retries)
}

// Instructions between two readings; the loop has two of each iteration. A reading that a switch
// fell into is repeated inside, which counts, too: then all is done again.
fn between(profile: *mut c_void, iterations: u64) -> u64 {
    loop {
        let (before, _) = read(profile);
        unsafe { asm!("2: dec {0}", "jnz 2b", inout(reg) iterations => _) };
        let (after, retries) = read(profile);
        if retries == 0 {
            return after - before;
        }
    }
}

fn count(iterations: u64) -> u64 {
    let mut profile = std::ptr::null_mut();
    assert_eq!(unsafe { EnableThreadProfiling(GetCurrentThread(), 0, 1, &mut profile) }, 0);
    between(profile, 1); // what is done once
    let beside = between(profile, 1);
    let counted = between(profile, iterations) - beside + 2;
    assert_eq!(unsafe { DisableThreadProfiling(profile) }, 0);
    counted
}

fn main() {
    let counter = HardwareCounter { kind: 0, reserved: 0, index: 2 };
    let name = b"KeSetHardwareCounterConfiguration\0".as_ptr();
    let kernel = unsafe { LoadLibraryA(b"ntoskrnl.exe\0".as_ptr()) };
    let configure = unsafe { GetProcAddress(kernel, name) }.expect("no configuration");
    assert_eq!(configure(&counter, 1), 0);
    println!("alone: {}", count(1_000_000));
    let threads: Vec<_> = (1..5).map(|i| std::thread::spawn(move || count(i * 100_000))).collect();
    let counts: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    println!("at once: {:?}", counts);
}
