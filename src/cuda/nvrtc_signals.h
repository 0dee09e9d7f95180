// The host's signal handlers while NVRTC compiles.
//
// NVRTC's front end, in the first compile of a process, takes SIGINT, SIGTERM and SIGXFSZ for itself for some 20 ms: a
// Ctrl-C then ends the process with exit code 4. Afterwards it puts back the host's function, but not its flags, so
// that one for three arguments (SA_SIGINFO) or for a stack of its own is called wrongly from then on. Nothing in its
// interface prevents that, and no time is short enough for a signal not to hit it. So its calls of signal() are made to
// do nothing.
#pragma once

namespace gemvjit::cuda {

// `library` is NVRTC, as dlopen() gave it. Its import of signal() is replaced for good, for all who use that library; a
// library that imports no such function, or in another way than by its table for procedures, is left as it is. Call it
// before the first compile. Threads: one at a time.
void keep_signals_from(void* library);

}  // namespace gemvjit::cuda
