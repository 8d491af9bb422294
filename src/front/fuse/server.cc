#include "front/fuse/server.h"

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "front/fuse/reply.h"

namespace thermo::fuse {
namespace {

bool would_wait(const Result<void>& result) {
  return !result && (result.error().code() == ErrorCode::kWouldWaitDevice || result.error().code() == ErrorCode::kWouldWaitStore);
}

}  // namespace

struct Server::Call {
  Request request;
  std::string name;  // owned copy of the request's name once the frame is left behind
  int device = -1;
  MonoTime start;
  RequestContext ctx;
  PendingPtr pending;  // null while the serving thread answers at once

  /// After this the call may outlive its frame.
  void detach() {
    if (auto* args = std::get_if<NameArgs>(&request.args)) name = args->name;
    else if (auto* xattr = std::get_if<XattrArgs>(&request.args)) name = xattr->name;
  }
  /// Points the request at `name`: after each move of the call.
  void attach() {
    if (auto* args = std::get_if<NameArgs>(&request.args)) args->name = name;
    else if (auto* xattr = std::get_if<XattrArgs>(&request.args)) xattr->name = name;
  }
};

Server::Server(vfs::Vfs& vfs, const Negotiated& agreed, const SessionOptions& options)
    : vfs_(vfs), handlers_(vfs, agreed), options_(options), metrics_(*options.metrics) {}

void Server::serve(int device, std::span<const std::byte> frame, Scratch& scratch) {
  const MonoTime start = options_.clock->now();
  InHeader header{};
  auto request = parse_request(frame, &header);
  if (!request) {
    log::warn("fuse: {}", request.error().message());
    if (header.unique != 0) send_error(device, header.unique, EIO);
    return;
  }
  if (request->opcode() == Opcode::kInterrupt) {
    inflight_.interrupt(std::get<InterruptIn>(request->args).unique);
    metrics_.count(header.opcode, Nanos::zero(), AnsweredBy::kInline);
    return;
  }
  Call call;
  call.request = *request;
  call.device = device;
  call.start = start;
  call.ctx.deadline = start + options_.timeout;
  call.ctx.may_wait = false;
  call.ctx.request_id = next_request_id();
  call.ctx.principal = {header.uid, header.gid, static_cast<std::int32_t>(header.pid)};

  Answer answer;
  const auto result = handlers_.run(call.ctx, call.request, false, scratch, answer);
  if (would_wait(result)) hand_over(std::move(call), result.error().code(), scratch);
  else finish(call, result, answer);
  scratch.shrink();
}

void Server::hand_over(Call call, ErrorCode why, Scratch& scratch) {
  call.detach();
  call.pending = inflight_.add(call.request.header.unique, call.request.header.opcode, call.device, call.ctx.deadline);
  call.ctx.may_wait = true;
  call.ctx.stop = call.pending->stop.get_token();
  auto shared = std::make_shared<Call>(std::move(call));
  shared->attach();
  ThreadPool& pool = why == ErrorCode::kWouldWaitDevice ? *options_.device_pool : *options_.read_pool;
  const auto queued = pool.submit(Priority::kForeground, [this, shared] {
    Scratch own;
    run_waiting(*shared, own);
  });
  if (!queued) run_waiting(*shared, scratch);
}

void Server::run_waiting(Call& call, Scratch& scratch) {
  Answer answer;
  auto result = call.ctx.check(*options_.clock);
  if (result) result = handlers_.run(call.ctx, call.request, true, scratch, answer);
  finish(call, result, answer);
  inflight_.remove(call.request.header.unique);  // the session may go away right after
}

void Server::finish(const Call& call, const Result<void>& result, Answer& answer) {
  if (!result) {
    answer = Answer();
    answer.error = to_errno(result.error().code());
    // The program was not interrupted: the mount is going away.
    if (answer.error == EINTR && inflight_.closed()) answer.error = EIO;
  }
  const bool late = call.pending && !call.pending->claim();
  Sent sent = Sent::kGone;
  if (!late && !answer.none) sent = send_answer(call.device, call.request.header.unique, answer);
  if (sent != Sent::kTaken) {
    if (answer.opened != 0) vfs_.release(answer.opened);
    if (answer.opened_dir != 0) vfs_.release_dir(answer.opened_dir);
  }
  if (late) return;  // expire() has counted it
  const Nanos took = options_.clock->now() - call.start;
  metrics_.count(call.request.header.opcode, took, call.pending ? AnsweredBy::kPool : AnsweredBy::kInline);
  if (answer.error == EIO && result.has_value() == false) {
    log::debug("fuse: request {} {}: {}", call.ctx.request_id, opcode_name(call.request.header.opcode),
               result.error().describe());
  }
  if (log::channel_enabled(log::Channel::kFuse)) trace(call, answer, took);
}

void Server::expire() {
  for (const auto& pending : inflight_.take_expired(options_.clock->now())) {
    send_error(pending->device, pending->unique, EIO);
    metrics_.count(pending->opcode, options_.timeout, AnsweredBy::kDeadline);
    log::warn("fuse: {} of {} was not answered within {} s: EIO", opcode_name(pending->opcode), options_.name,
              std::chrono::duration<double>(options_.timeout).count());
  }
}

void Server::trace(const Call& call, const Answer& answer, Nanos took) const {
  const auto& header = call.request.header;
  std::string path = vfs_.path_of(header.nodeid);
  std::string details;
  if (const auto* name = std::get_if<NameArgs>(&call.request.args)) {
    path += (path.empty() ? "" : "/") + std::string(name->name);
  } else if (const auto* xattr = std::get_if<XattrArgs>(&call.request.args)) {
    details = " name=" + std::string(xattr->name) + " size=" + std::to_string(xattr->size);
  } else if (const auto* read = std::get_if<ReadIn>(&call.request.args)) {
    details =
        " offset=" + std::to_string(read->offset) + " size=" + std::to_string(read->size) + " fh=" + std::to_string(read->fh);
  } else if (const auto* release = std::get_if<ReleaseIn>(&call.request.args)) {
    details = " fh=" + std::to_string(release->fh);
  }
  for (std::string* text : {&path, &details}) {
    for (char& c : *text) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';  // a name with a newline stays one line
    }
  }
  log::trace(log::Channel::kFuse, "id={} op={} mount={} path='{}' node={}{} uid={} pid={} bytes={} ms={:.3f} by={} result={}",
             call.ctx.request_id, opcode_name(header.opcode), options_.name, path, header.nodeid, details, header.uid, header.pid,
             answer.size(), std::chrono::duration<double, std::milli>(took).count(), call.pending ? "pool" : "inline",
             answer.error);
}

}  // namespace thermo::fuse
