#include "housekeeper.hh"

namespace byname::xrd {

Housekeeper::Housekeeper(std::chrono::milliseconds period, std::function<void()> task)
    : period_(period), task_(std::move(task)), thread_([this] { run(); }) {}

Housekeeper::~Housekeeper() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void Housekeeper::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, period_, [this] { return is_over_; })) {
    lock.unlock();
    task_();
    lock.lock();
  }
}

}  // namespace byname::xrd
