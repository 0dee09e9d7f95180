// NvrtcCall: a call into NVRTC, or its opening, which exit() waits for (src/base/process_end.h).
//
// NVRTC makes objects with destructors when it is opened, 3000 of them, and some more in its first compile. Those would
// be destroyed before the handler of exit() runs if they came after it, beneath the very call that made them. So while
// the first calls are under way a thread registers the handler anew, some thousand times a second; later ones do when
// they are over.
#pragma once

#include "src/base/process_end.h"

namespace gemvjit::cuda {

class NvrtcCall {
 public:
  NvrtcCall();
  ~NvrtcCall();
  NvrtcCall(const NvrtcCall&) = delete;
  NvrtcCall& operator=(const NvrtcCall&) = delete;
  // False: the process is ending, and NVRTC is not to be called.
  bool allowed() const { return call_.allowed() && !process_is_ending(); }

 private:
  const LibraryCall call_;
};

}  // namespace gemvjit::cuda
