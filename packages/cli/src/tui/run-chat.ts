import { ProcessTerminal, type Terminal } from '@earendil-works/pi-tui'
import { ChatApp } from './app/chat-app.ts'
import type { PlainChat } from './screen-reader/plain-chat.ts'
import type { ChatEnd, ChatOptions } from './chat-options.ts'

/** Shows a session and lets one talk to it, until the user leaves. Afterwards the terminal is as it was. */
export async function runChat(options: ChatOptions): Promise<ChatEnd> {
  if (options.terminal) return runOn(options, options.terminal)
  const gone = watchTerminal()
  const signal = options.signal ? AbortSignal.any([options.signal, gone]) : gone
  // Windows has no such signals.
  const canSuspend = process.platform !== 'win32'
  let chat: ChatApp | PlainChat | undefined
  const suspension = canSuspend ? suspendable({ pause: () => chat?.pause(), resume: () => chat?.resume() }) : undefined
  const all = { ...options, signal, ...(suspension && { suspend: suspension.suspend }) }
  try {
    return await runOn(all, new ProcessTerminal(), (made) => (chat = made))
  } finally {
    suspension?.close()
  }
}

async function runOn(
  options: ChatOptions,
  terminal: Terminal,
  onMade?: (chat: ChatApp | PlainChat) => void,
): Promise<ChatEnd> {
  const chat = options.look.screenReader ? await plainChat(options, terminal) : new ChatApp(options, terminal)
  onMade?.(chat)
  const unwatch = restoreOnDeath(() => chat.restore())
  try {
    return await chat.run()
  } finally {
    unwatch()
  }
}

/** Loaded only for those who hear the screen. */
async function plainChat(options: ChatOptions, terminal: Terminal): Promise<PlainChat> {
  const { PlainChat: Chat } = await import('./screen-reader/plain-chat.ts')
  return new Chat(options, terminal)
}

/**
 * Whatever ends the process, the terminal is given back first: an error that nobody caught, or an exit in the middle. Gives a function that
 * takes the watch off again.
 */
function restoreOnDeath(restore: () => void): () => void {
  // A monitor sees an error before whoever reports it, and does not count as having handled it.
  process.on('uncaughtExceptionMonitor', restore)
  process.on('exit', restore)
  return () => {
    process.off('uncaughtExceptionMonitor', restore)
    process.off('exit', restore)
  }
}

/**
 * Aborted when the terminal of this process has gone away: its window was closed, or the connection to it broke. Not every system and not
 * every shell tells of that with a signal. What is written to it afterwards fails, and nobody is left who could be told.
 */
function watchTerminal(): AbortSignal {
  const controller = new AbortController()
  const gone = (): void => controller.abort()
  for (const event of ['end', 'close', 'error']) process.stdin.on(event, gone)
  // The listeners stay: also giving the terminal back fails then, and an error that nobody takes would end the process in disorder.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', gone)
  return controller.signal
}

/** What gives the terminal to the shell, and what takes it back. */
interface Suspendable {
  pause: () => void
  resume: () => void
}

interface Suspension {
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
function suspendable({ pause, resume }: Suspendable): Suspension {
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
