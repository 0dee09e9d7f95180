/* One gated MLP block of a ModelOpt NVFP4 checkpoint, from its safetensors file to a decode step:
 *
 *   out[M,K] = down( silu(gate(x)) * up(x) )        x, out: raw BF16 files [M,K]
 *
 *   cc -std=c99 mlp_block.c $(pkg-config --cflags --libs gemvjit) -ldl -o mlp_block
 *   ./mlp_block model.safetensors model.layers.0.mlp M x.bin out.bin
 *
 * Gate and up are one weight of 2I rows for the library; each keeps its own global scale, as a segment. Block scales
 * are stored row-major and swizzled on the device, once. libcuda is opened by name, so that no CUDA toolkit is needed.
 */
#include <dlfcn.h>
#include <gemvjit/gemvjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long device_pointer;
static struct {
  int (*init)(unsigned);
  int (*retain)(void** context, int device);
  int (*set_current)(void* context);
  int (*allocate)(device_pointer*, size_t);
  int (*to_device)(device_pointer, const void*, size_t);
  int (*to_host)(void*, device_pointer, size_t);
  int (*synchronize)(void);
} cuda;

static void fail(const char* what, const char* detail) {
  fprintf(stderr, "mlp_block: %s: %s\n", what, detail);
  exit(1);
}
static void check(int cuda_result, const char* what) {
  if (cuda_result != 0) fail(what, "the CUDA driver refused");
}
static void must(gemvjit_status status) {
  if (status != GEMVJIT_OK) fail(gemvjit_status_name(status), gemvjit_last_error());
}
static void open_cuda(void) {
  static const char* const names[] = {"cuInit",          "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc_v2",
                                      "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2",          "cuCtxSynchronize"};
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) fail("libcuda.so.1", dlerror());
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    void* const symbol = dlsym(library, names[i]);
    if (symbol == NULL) fail(names[i], "not in libcuda.so.1");
    memcpy((char*)&cuda + i * sizeof symbol, &symbol, sizeof symbol); /* C has no cast from data to functions */
  }
  void* context = NULL;
  check(cuda.init(0), "cuInit");
  check(cuda.retain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuda.set_current(context), "cuCtxSetCurrent");
}
static char* device_memory(size_t bytes) {
  device_pointer p = 0;
  check(cuda.allocate(&p, bytes), "cuMemAlloc");
  return (char*)(size_t)p;
}
static void upload(void* device, const void* host, size_t bytes) {
  check(cuda.to_device((device_pointer)(size_t)device, host, bytes), "copy to the device");
}
static unsigned char* read_file(const char* path, size_t* size) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) fail(path, "cannot be read");
  *size = (size_t)ftell(file);
  rewind(file);
  unsigned char* const bytes = malloc(*size + 1);
  if (bytes == NULL || fread(bytes, 1, *size, file) != *size) fail(path, "cannot be read");
  fclose(file);
  bytes[*size] = 0;
  return bytes;
}

/* A safetensors file: 8 bytes of header length, a JSON header, data. */
typedef struct {
  unsigned char* bytes;
  size_t size, data;
  char* header;
} checkpoint;

static checkpoint open_checkpoint(const char* path) {
  checkpoint file;
  unsigned long long length = 0;
  file.bytes = read_file(path, &file.size);
  if (file.size >= 8) memcpy(&length, file.bytes, 8);
  if (file.size < 8 || length > file.size - 8) fail(path, "is no safetensors file");
  file.data = 8 + (size_t)length;
  file.header = calloc(1, (size_t)length + 1);
  if (file.header == NULL) fail(path, "out of memory");
  memcpy(file.header, file.bytes + 8, (size_t)length);
  return file;
}

/* A tensor's bytes; its first dimension in *rows. The header is searched, not parsed: enough for files of good will. */
static const unsigned char* tensor(const checkpoint* file, const char* prefix, const char* name, const char* dtype,
                                   size_t* bytes, long long* rows) {
  char key[512];
  unsigned long long begin = 0, end = 0;
  snprintf(key, sizeof key, "\"%s.%s\"", prefix, name);
  const char* const entry = strstr(file->header, key);
  const char* const stop = entry != NULL ? strchr(entry, '}') : NULL;
  if (stop == NULL) fail(key, "no such tensor");
  const char *type = strstr(entry, dtype), *shape = strstr(entry, "\"shape\""),
             *place = strstr(entry, "\"data_offsets\"");
  if (type == NULL || type > stop) fail(key, "is not of the expected type");
  if (shape == NULL || shape > stop || sscanf(strchr(shape, '['), "[%lld", rows) != 1) *rows = 1; /* a scalar: [] */
  if (place == NULL || place > stop || sscanf(strchr(place, '['), "[%llu,%llu", &begin, &end) != 2 || begin > end ||
      end > file->size - file->data)
    fail(key, "lies outside of its file");
  *bytes = (size_t)(end - begin);
  return file->bytes + file->data + begin;
}

/* One weight of `parts` parts below each other, on the device. */
typedef struct {
  int64_t n, k, parts;
  char *codes, *scales;
  gemvjit_scale_segment segments[2];
} weight;
static weight load(const checkpoint* file, gemvjit_context* context, const char* prefix, const char* const* names,
                   int parts, int silu_mul) {
  weight w = {0};
  w.parts = parts;
  char *row_major = NULL, *global_scales = device_memory(sizeof(float) * 2);
  for (int i = 0; i < parts; ++i) {
    char name[512];
    size_t code_bytes, scale_bytes, four;
    long long rows, ignored;
    snprintf(name, sizeof name, "%s.%s", prefix, names[i]);
    const unsigned char* const codes = tensor(file, name, "weight", "U8", &code_bytes, &rows);
    const unsigned char* const scales = tensor(file, name, "weight_scale", "F8_E4M3", &scale_bytes, &ignored);
    const unsigned char* const global_scale = tensor(file, name, "weight_scale_2", "F32", &four, &ignored);
    if (rows <= 0 || code_bytes % (size_t)rows != 0 || scale_bytes * 8 != code_bytes || four != sizeof(float))
      fail(name, "is no NVFP4 weight in ModelOpt's layout");
    if (i == 0) {
      w.k = (int64_t)(code_bytes / (size_t)rows * 2);
      w.codes = device_memory(code_bytes * (size_t)parts);
      row_major = device_memory(scale_bytes * (size_t)parts);
    } else if (w.n != rows * i || w.k != (int64_t)(code_bytes / (size_t)rows * 2)) {
      fail(name, "does not fit the part before it");
    }
    upload(w.codes + (size_t)i * code_bytes, codes, code_bytes);
    upload(row_major + (size_t)i * scale_bytes, scales, scale_bytes);
    upload(global_scales + (size_t)i * sizeof(float), global_scale, sizeof(float));
    w.n += rows;
    w.segments[i].row_end = w.n;
    w.segments[i].global_scale = (const float*)global_scales + i;
  }
  gemvjit_problem wanted[2];
  must(gemvjit_problem_init(&wanted[0], GEMVJIT_NVFP4_GEMV, w.n, w.k));
  wanted[0].silu_mul = silu_mul, wanted[0].scale_segments = wanted[0].allow_untuned = 1;
  must(gemvjit_problem_init(&wanted[1], GEMVJIT_SWIZZLE_BLOCKSCALE, w.n, w.k));
  must(gemvjit_warmup(context, wanted, 2, NULL));
  w.scales = device_memory(gemvjit_swizzled_scale_bytes(w.n, w.k));
  gemvjit_swizzle_blockscale_args swizzle = {sizeof swizzle, w.n, w.k, row_major, w.scales};
  must(gemvjit_swizzle_blockscale_device(context, &swizzle, NULL));
  check(cuda.synchronize(), "swizzle"); /* scales are read ahead: at rest before the first launch */
  return w;
}
static void multiply(gemvjit_context* context, const weight* w, int64_t m, const void* x, void* out, int silu_mul) {
  gemvjit_nvfp4_gemv_args args = {0};
  args.struct_size = sizeof args;
  args.m = m, args.n = w->n, args.k = w->k, args.x_row_stride = w->k;
  args.x = x, args.out = out, args.weight = w->codes, args.weight_scale = w->scales;
  args.scale_layout = GEMVJIT_SCALE_128X4_SWIZZLED, args.global_scale_kind = GEMVJIT_GLOBAL_SCALE_MULTIPLIER;
  args.silu_mul = silu_mul, args.pdl = 1;
  args.segments = w->segments, args.segment_count = w->parts;
  must(gemvjit_nvfp4_gemv(context, &args, NULL));
}

int main(int argc, char** argv) {
  static const char *const gate_up_names[] = {"gate_proj", "up_proj"}, *const down_names[] = {"down_proj"};
  if (argc != 6) fail("usage", "mlp_block FILE PREFIX M X_FILE OUT_FILE");
  const int64_t m = atoll(argv[3]);
  const checkpoint file = open_checkpoint(argv[1]);
  open_cuda();
  gemvjit_context* context = NULL;
  must(gemvjit_create(NULL, &context));
  const weight gate_up = load(&file, context, argv[2], gate_up_names, 2, 1);
  const weight down = load(&file, context, argv[2], down_names, 1, 0);
  must(gemvjit_seal(context)); /* from now on nothing compiles */

  size_t x_bytes;
  unsigned char* const x_host = read_file(argv[4], &x_bytes);
  if (m < 1 || m > 32 || x_bytes != (size_t)(m * gate_up.k) * 2) fail(argv[4], "is not BF16 [M, K] with M of 1 to 32");
  if (down.k * 2 != gate_up.n) fail(argv[2], "gate_up and down do not fit");
  const size_t out_bytes = (size_t)(m * down.n) * 2;
  char *const x = device_memory(x_bytes), *const hidden = device_memory((size_t)(m * down.k) * 2);
  char* const out = device_memory(out_bytes);
  upload(x, x_host, x_bytes);
  multiply(context, &gate_up, m, x, hidden, 1);
  multiply(context, &down, m, hidden, out, 0); /* begins under the one before, reads `hidden` once that is done */
  unsigned char* const out_host = malloc(out_bytes);
  check(cuda.to_host(out_host, (device_pointer)(size_t)out, out_bytes), "copy from the device");
  FILE* const result = fopen(argv[5], "wb");
  if (result == NULL || fwrite(out_host, 1, out_bytes, result) != out_bytes || fclose(result) != 0)
    fail(argv[5], "cannot be written");
  return gemvjit_destroy(context) == GEMVJIT_OK ? 0 : 1;
}
