// A pool of threads for work that falls into numbered pieces. It starts at its first use, and anew in a forked process.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace craftax {

inline constexpr int kMaxThreads = 1024;

class ThreadPool {
 public:
  // Calls work(piece) for every piece below `pieces`, in the calling thread and up to `threads - 1` more; returns when
  // all are done. Several threads may call it at once.
  template <class Work>
  static void run(int pieces, int threads, const Work& work) {
    const int helpers = (threads < pieces ? threads : pieces) - 1;
    if (helpers <= 0) {
      for (int piece = 0; piece < pieces; ++piece) work(piece);
      return;
    }
    const auto call = [](const void* context, int piece) { (*static_cast<const Work*>(context))(piece); };
    Job job{call, &work, pieces, helpers};
    instance().share(job);
  }

 private:
  struct Job {
    void (*call)(const void*, int);
    const void* context;
    int pieces;
    int wanted;       // helpers that may still join
    int helping = 0;  // helpers at work
    std::atomic<int> next{0};
    Job* following = nullptr;

    void work() {
      for (int piece; (piece = next.fetch_add(1, std::memory_order_relaxed)) < pieces;) call(context, piece);
    }
  };

  static ThreadPool& instance() {
    static std::once_flag once;
    std::call_once(once, [] {
      pthread_atfork(nullptr, nullptr, [] { current().store(nullptr); });
    });
    ThreadPool* pool = current().load();
    if (pool == nullptr) {
      // Never destroyed: its threads may outlive everything else, and after a fork its locks are in an unknown state.
      ThreadPool* made = new ThreadPool;
      if (current().compare_exchange_strong(pool, made)) {
        pool = made;
      } else {
        delete made;
      }
    }
    return *pool;
  }

  static std::atomic<ThreadPool*>& current() {
    static std::atomic<ThreadPool*> pool{nullptr};
    return pool;
  }

  void share(Job& job) {
    const int helpers = job.wanted;
    bool all = false;
    {
      const std::lock_guard lock(mutex_);
      start(helpers);
      all = helpers >= started_;
      job.following = jobs_;
      jobs_ = &job;
    }
    if (all) {
      posted_.notify_all();
    } else {
      for (int i = 0; i < helpers; ++i) posted_.notify_one();
    }
    job.work();
    std::unique_lock lock(mutex_);
    Job** place = &jobs_;
    while (*place != &job) place = &(*place)->following;
    *place = job.following;
    finished_.wait(lock, [&] { return job.helping == 0; });
  }

  // Where the system gives no more threads, those that there are do the work.
  void start(int wanted) {
    try {
      for (; started_ < wanted; ++started_) std::thread([this] { help(); }).detach();
    } catch (const std::system_error&) {
    }
  }

  void help() {
    std::unique_lock lock(mutex_);
    while (true) {
      Job* job = jobs_;
      while (job != nullptr && job->wanted == 0) job = job->following;
      if (job == nullptr) {
        posted_.wait(lock);
        continue;
      }
      --job->wanted;
      ++job->helping;
      lock.unlock();
      job->work();
      lock.lock();
      if (--job->helping == 0) finished_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable posted_, finished_;
  Job* jobs_ = nullptr;
  int started_ = 0;
};

}  // namespace craftax
