/** What gives the terminal to the shell, and what takes it back. */
export interface Suspendable {
  pause: () => void
  resume: () => void
}

export interface Suspension {
  /** Stops the process group, as Ctrl-Z does elsewhere. Returns when the shell continues it. */
  suspend: () => void
  close: () => void
}

/**
 * If the signal has no effect, no signal to continue comes either: it is ignored if there is no shell to return to. While the process is
 * stopped, its timers are too.
 */
const ignoredAfterMs = 200

/**
 * Lets a chat be suspended: by its own key, and by SIGTSTP from outside. The terminal is the shell's meanwhile, and is taken back and drawn
 * again on SIGCONT, also after a SIGSTOP that nobody can see coming.
 */
export function suspendable({ pause, resume }: Suspendable): Suspension {
  let isPaused = false
  const suspend = (): void => {
    if (isPaused) return
    isPaused = true
    pause()
    process.off('SIGTSTP', suspend)
    // The whole group: a wrapper such as npx must stop too, or the shell does not get the terminal.
    process.kill(0, 'SIGTSTP')
    setTimeout(takeBack, ignoredAfterMs)
  }
  const takeBack = (): void => {
    if (!isPaused) return
    isPaused = false
    process.on('SIGTSTP', suspend)
    resume()
  }
  const continued = (): void => {
    if (!isPaused) {
      isPaused = true
      pause()
    }
    takeBack()
  }
  process.on('SIGTSTP', suspend)
  process.on('SIGCONT', continued)
  return {
    suspend,
    close: () => {
      process.off('SIGTSTP', suspend)
      process.off('SIGCONT', continued)
      isPaused = false
    },
  }
}
