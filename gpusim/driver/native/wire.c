// The way to the simulator: a socket for requests, a file in memory that both sides have mapped.
#define _GNU_SOURCE
#include "wire.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <ucontext.h>
#include <unistd.h>

// So that whoever looks into this library finds what it is.
__attribute__((used)) static const char what_it_is[] =
    "gpusim: a simulator in the place of CUDA's driver; no GPU is used";

struct device gpusim_device;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int channel = -1, memory = -1;
static char *reached;  // device memory, mapped for this library
static pid_t owner;

struct request { char name[32]; uint32_t count, thread; u64 size; };
struct reply { int32_t status; uint32_t count; u64 size; };

static int send_all(const void *data, size_t size) {
  for (const char *at = data; size;) {
    ssize_t sent = send(channel, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return -1;
    at += sent, size -= (size_t)sent;
  }
  return 0;
}

static int receive_all(void *data, size_t size) {
  for (char *at = data; size;) {
    ssize_t got = recv(channel, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    at += got, size -= (size_t)got;
  }
  return 0;
}

static int lost(void) {
  static int told;
  if (!told++) fprintf(stderr, "gpusim: the simulator has ended\n");
  return UNKNOWN;
}

int gpusim_is_connected(void) { return channel >= 0 && owner == getpid(); }

// ---- Accesses of the host to memory that work on streams still touches

enum { MOST_GUARDS = 256, MOST_TOUCHED = 32, PAGE = 4096 };
static struct { u64 begin, size, is_read_alone; } guards[MOST_GUARDS];
static volatile int guard_count, touched_count;
static u64 touched[2 * MOST_TOUCHED];
static struct sigaction before;

static void let_through(int signal, siginfo_t *about, void *state) {
  u64 address = (u64)about->si_addr;
  int writes = 1;
#ifdef __x86_64__
  writes = (((ucontext_t *)state)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#endif
  for (int k = 0; k < guard_count; k++) {
    if (address - guards[k].begin >= guards[k].size) continue;
    int is_known = touched_count == MOST_TOUCHED;
    if (!is_known) {
      touched[2 * touched_count] = address, touched[2 * touched_count + 1] = (u64)writes;
      touched_count++;
    }
    // When enough is known, the whole range is open; else the page is, to what was done.
    u64 begin = is_known ? guards[k].begin : address / PAGE * PAGE;
    mprotect((void *)begin, is_known ? guards[k].size : PAGE, is_known || writes ? PROT_READ | PROT_WRITE : PROT_READ);
    return;
  }
  static const char said[] =
      "gpusim: the host accesses device memory, which kernels and copies alone reach: copy it to the"
      " host (cudaMemcpy), or allocate it by cudaMallocManaged\n";
  if (address - gpusim_device.arena_begin < gpusim_device.arena_bytes)
    (void)!write(STDERR_FILENO, said, sizeof said - 1);
  sigaction(signal, &before, NULL);  // a fault of the program's own: it happens again
}

static void watch(void) {
  static int is_on;
  if (is_on++) return;
  struct sigaction one = {.sa_sigaction = let_through, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  sigaction(SIGSEGV, &one, &before);
}

void gpusim_unguard(void) {
  for (int k = 0; k < guard_count; k++) mprotect((void *)guards[k].begin, guards[k].size, PROT_READ | PROT_WRITE);
  guard_count = 0;
}

void gpusim_guard(void) {
  if (!gpusim_device.watches_host || !gpusim_is_connected()) return;
  gpusim_unguard();
  u64 count[1] = {0};
  char *pages = NULL;
  if (gpusim_ask("guarded", NULL, 0, NULL, 0, count, 1, &pages, NULL)) count[0] = 0;
  if (count[0]) watch();
  for (int k = 0; k < MOST_GUARDS && k < (int)count[0]; k++) {
    memcpy(&guards[k], pages + k * sizeof guards[k], sizeof guards[k]);
    guard_count = k + 1;
    mprotect((void *)guards[k].begin, guards[k].size, guards[k].is_read_alone ? PROT_READ : PROT_NONE);
  }
  free(pages);
}

__attribute__((destructor)) static void tell_touched(void) {
  u64 known[2 * MOST_TOUCHED];
  unsigned count = 2 * (unsigned)touched_count;
  if (!count || !gpusim_is_connected()) return;
  memcpy(known, touched, count * sizeof *known);
  touched_count = 0;
  gpusim_ask("touched", known, count, NULL, 0, NULL, 0, NULL, NULL);
}

// ---- Allocations and written bytes, by the program's own word

enum { MOST_NOTES = 512, MOST_COMPARED = 32 };
static struct note { u64 kind, address, size; } notes[MOST_NOTES];
static unsigned note_count;
static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;

static void tell_notes(void) {
  struct note known[MOST_NOTES];
  pthread_mutex_lock(&noting);
  unsigned count = note_count;
  memcpy(known, notes, count * sizeof *known);
  note_count = 0;
  pthread_mutex_unlock(&noting);
  if (count) gpusim_ask("notes", NULL, 0, known, count * sizeof *known, NULL, 0, NULL, NULL);
}

void gpusim_note(int kind, u64 address, size_t size) {
  struct note one = {(u64)kind, address, size};
  int is_known = 0;
  pthread_mutex_lock(&noting);
  while (note_count == MOST_NOTES) {
    pthread_mutex_unlock(&noting);
    tell_notes();
    pthread_mutex_lock(&noting);
  }
  for (unsigned k = note_count; k-- && k + MOST_COMPARED >= note_count && !is_known;)
    is_known = !memcmp(&notes[k], &one, sizeof one);
  if (!is_known) notes[note_count++] = one;
  pthread_mutex_unlock(&noting);
}

int gpusim_ask(const char *name, const u64 *numbers, unsigned count, const void *bytes, size_t size,
               u64 *out, unsigned outs, char **text, size_t *length) {
  if (!gpusim_is_connected()) return NOT_INITIALIZED;
  tell_touched();
  tell_notes();
  struct request head = {.count = count, .thread = (uint32_t)syscall(SYS_gettid), .size = size};
  strncpy(head.name, name, sizeof head.name - 1);
  struct reply answer;
  pthread_mutex_lock(&lock);
  int failed = send_all(&head, sizeof head) || send_all(numbers, count * sizeof *numbers) ||
               send_all(bytes, size) || receive_all(&answer, sizeof answer);
  for (uint32_t k = 0; !failed && k < answer.count; k++) {
    u64 number;
    failed = receive_all(&number, sizeof number);
    if (!failed && k < outs) out[k] = number;
  }
  char *held = NULL;
  if (!failed && (answer.size || text)) {
    held = malloc(answer.size + 1);
    failed = !held || receive_all(held, answer.size);
    if (!failed) held[answer.size] = 0;
  }
  pthread_mutex_unlock(&lock);
  if (failed) {
    free(held);
    return lost();
  }
  if (text) {
    *text = held;
    if (length) *length = answer.size;
  } else {
    free(held);
  }
  return answer.status;
}

// Receives the device's description, and with it the file that holds device memory.
static int receive_device(void) {
  char space[CMSG_SPACE(sizeof(int))];
  struct iovec part = {&gpusim_device, sizeof gpusim_device};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  ssize_t got;
  do got = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return -1;
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  if (!head || head->cmsg_type != SCM_RIGHTS) return -1;
  memcpy(&memory, CMSG_DATA(head), sizeof memory);
  return receive_all((char *)&gpusim_device + got, sizeof gpusim_device - (size_t)got);
}

static int open_channel(void) {
  const char *path = getenv("GPUSIM_DRIVER");
  if (!path) {
    fprintf(stderr, "%s. Start programs with: gpusim run -- PROGRAM\n", what_it_is);
    return NO_DEVICE;
  }
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return NO_DEVICE;
  strcpy(address.sun_path, path);
  channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int32_t own = (int32_t)getpid();
  if (channel < 0 || connect(channel, (struct sockaddr *)&address, sizeof address) ||
      send_all(&own, sizeof own) || receive_device()) {
    if (channel >= 0) close(channel);
    channel = -1;
    fprintf(stderr, "gpusim: there is no simulator at %s any more\n", path);
    return NO_DEVICE;
  }
  void *wanted = (void *)gpusim_device.arena_begin;
  void *mapped = mmap(wanted, gpusim_device.arena_bytes, PROT_NONE,
                      MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, memory, 0);
  if (mapped != wanted) {
    int reason = mapped == MAP_FAILED ? errno : 0;
    close(channel);
    channel = -1;
    if (reason == ENOMEM)
      fprintf(stderr, "gpusim: device memory takes %llu bytes of addresses, more than a limit of the program's (ulimit -v)\n",
              (unsigned long long)gpusim_device.arena_bytes);
    else
      fprintf(stderr, "gpusim: addresses from %p on are taken, where device memory would lie\n", wanted);
    return OUT_OF_MEMORY;
  }
  reached = mmap(NULL, gpusim_device.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory, 0);
  if (reached == MAP_FAILED) {  // a limit on addresses: the program reaches all of it
    reached = mapped;
    mprotect(mapped, gpusim_device.arena_bytes, PROT_READ | PROT_WRITE);
  } else watch();
  return SUCCESS;
}

void *gpusim_at(u64 address) {
  u64 offset = address - gpusim_device.arena_begin;
  return offset < gpusim_device.arena_bytes ? reached + offset : (void *)address;
}

static int all_are_shared;
void gpusim_share(u64 address, size_t size, int is_shared) {
  static int some_are;
  if (all_are_shared || reached == (char *)gpusim_device.arena_begin || !(is_shared || some_are)) return;
  some_are = 1;
  u64 begin = address / PAGE * PAGE, end = (address + size + PAGE - 1) / PAGE * PAGE;
  mprotect((void *)begin, end - begin, is_shared ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void gpusim_share_all(void) {
  gpusim_share(gpusim_device.arena_begin, gpusim_device.arena_bytes, 1);
  all_are_shared = 1;
}

int gpusim_connect(void) {
  static int status = NOT_INITIALIZED;
  pthread_mutex_lock(&lock);
  if (!owner) {
    owner = getpid();
    status = open_channel();
  }
  // As with CUDA, a context does not survive a fork.
  int found = owner == getpid() ? status : NOT_INITIALIZED;
  pthread_mutex_unlock(&lock);
  return found;
}

int gpusim_map(void *place, size_t size, u64 offset) {
  void *made = mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, (off_t)offset);
  return made == place ? SUCCESS : OUT_OF_MEMORY;
}

int gpusim_unmap(void *place, size_t size) {
  // The program's own pages again, with what they hold by now.
  void *held = malloc(size);
  if (!held) return OUT_OF_MEMORY;
  memcpy(held, place, size);
  void *made = mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (made == place) memcpy(place, held, size);
  free(held);
  return made == place ? SUCCESS : OUT_OF_MEMORY;
}
