// A library that stands before libc and makes one chosen system call below one folder fail. Two ways to use it:
// by LD_PRELOAD, armed by the environment, in any program; or linked, armed by fault_shim_arm().
//
//   GEMVJIT_FAULT_FOLDER  absolute; calls on paths below it, and on descriptors of what was opened there, are counted
//   GEMVJIT_FAULT_AT      the call at which it happens, counted from 1
//   GEMVJIT_FAULT_KIND    one of the names in fault_shim.cpp: error, lost_reply, short, end, kill_before, kill_after
//   GEMVJIT_FAULT_ERRNO   a number, for error and lost_reply
//   GEMVJIT_FAULT_LASTING 1: the calls after it that have the same name fail alike (error only)
//   GEMVJIT_FAULT_RANDOM  1: getrandom() always gives the same bytes
//   GEMVJIT_FAULT_SKIP_FSYNC  1: fsync() is counted and may fail, but is not made
//
// Counted: open openat read pread write fsync close link linkat rename renameat renameat2 unlink unlinkat mkdirat
// fchown fchmod futimens stat lstat fstat fstatat access, with their 64-bit names. Threads: any; the count is one for the process.
#pragma once

enum FaultKind : int {
  fault_none = 0,     // count only
  fault_error,        // the call is not made and answers the errno
  fault_lost_reply,   // the call is made and answers the errno, as over a network that lost the answer
  fault_short,        // a read or write moves half of the bytes, at least one
  fault_end,          // a read finds the end of the file; a write moves nothing
  fault_kill_before,  // SIGKILL
  fault_kill_after,
};

extern "C" {
// Calls whose name is one of these (with commas between, as counted: "renameat2,link,linkat") always fail with the
// errno and are not made, besides what is armed, until called with "". `names` must live on. Below the folder and while
// armed.
void fault_shim_never(const char* names, int error);
// Count from 0 again; from now on fault `kind` at call `at`. `folder` is copied.
void fault_shim_arm(const char* folder, long at, int kind, int error, int lasting);
// Stop; the number of calls counted since fault_shim_arm.
long fault_shim_disarm();
// Calls noted since fault_shim_arm, in order, as "open O_NOFOLLOW", "fstat", "read", ...: the name and, of a call that
// opens a file, which of O_NOFOLLOW, O_CREAT and O_DIRECTORY it had. At most 256; nullptr after the last.
const char* fault_shim_trace(int index);
// Another line in that order, for what happens outside libc. `text` must live on.
void fault_shim_note(const char* text);
// Name of the call at which the fault happened since fault_shim_arm; "" if none was reached.
const char* fault_shim_hit();
void fault_shim_constant_random(int on);
// fsync() is counted and may fail, but is not made: only a crash of the machine could tell, and disks are slow.
void fault_shim_skip_fsync(int on);
}
