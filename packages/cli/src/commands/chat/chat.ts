import type { Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { isInteractive, type Io } from '../../command-line/io.ts'
import { traceUrlOf } from '../../host/otlp.ts'
import { readStart, forgetStart } from './start-mark.ts'
import type { ChatLook, ChatOptions } from '../../tui/chat-options.ts'
import type { ChatServices } from '../../tui/chat-services.ts'
import type { OpenedSession, SessionSource } from '../../session-source.ts'
import { ChatProblems } from './problems.ts'
import { lookOf, showChat } from './screen.ts'

/** The chat. If there is nothing to ask, draws the screen before it loads the runtime. */
export async function chat(invocation: Invocation, io: Io): Promise<ExitCode> {
  if (!isInteractive(io)) {
    throw usageFailure('The chat needs a terminal for input and output.', ['tapetree run "<prompt>"'])
  }
  // An option that is wrong is told before there is a screen.
  traceUrlOf(invocation)
  const start = needsAnswers(invocation) ? undefined : await readStart(io)
  if (start) return chatAtOnce({ invocation, io, terminal: start.terminal })
  return (await import('./here.ts')).chatHere(invocation, io)
}

/** A named session may belong to another folder, and a named model must be looked up. */
function needsAnswers({ values }: Invocation): boolean {
  const isNamed = ['fork', 'session', 'model'].some((name) => values[name] !== undefined)
  return isNamed || typeof values['resume'] === 'string'
}

interface ChatAtOnceOptions {
  invocation: Invocation
  io: Io
  terminal: Omit<ChatLook, 'color'>
}

/** Loading blocks the process, so the first frame is drawn before. */
const loadAfterMs = 30

/** Draws the screen before it loads the runtime, as the last start succeeded without questions. On failure, falls back to a full start. */
async function chatAtOnce({ invocation, io, terminal }: ChatAtOnceOptions): Promise<ExitCode> {
  const problems = new ChatProblems()
  const loading = Promise.withResolvers<void>()
  const behind = loading.promise.then(async () => {
    const { openBehindScreen } = await import('./behind-screen.ts')
    return openBehindScreen(invocation, { io, problems })
  })
  const isPicked = invocation.values['resume'] === true
  const first = behind.then(({ opened }) => opened as OpenedSession)
  first.catch(() => undefined)
  // Without a runtime, other screens cannot attach either.
  const host = { listen: () => behind.then(({ listen }) => listen()).catch(() => undefined) }
  const remarks: ChatOptions['remarks'] = (tell) => problems.listen(tell)
  const look = lookOf(invocation, terminal, io)
  const prompt = invocation.positionals.join(' ')
  setTimeout(() => loading.resolve(), loadAfterMs)
  try {
    const source = lateSource(behind.then((each) => each.source))
    const services = async (): Promise<ChatServices> => (await behind).services()
    const shown = { source, first: isPicked ? undefined : first, services, look, remarks, prompt, host }
    const end = await showChat({ io, ...shown })
    await (await behind).leave(end.sessionId)
    return exitCodes.ok
  } catch (error) {
    const hasFailed = await behind.then(
      () => false,
      () => true,
    )
    if (!hasFailed) {
      await (await behind).leave(undefined)
      throw error
    }
    await forgetStart(io)
    return (await import('./here.ts')).chatHere(invocation, io)
  }
}

/** A source that is still loading: callers wait for it. */
function lateSource(source: Promise<SessionSource>): SessionSource {
  // Callers receive the error; this only avoids an unhandled rejection.
  source.catch(() => undefined)
  return {
    open: async (sessionId) => (await source).open(sessionId),
    create: async () => (await source).create(),
    fork: async (sessionId, entryId) => (await source).fork(sessionId, entryId),
    list: async (query) => (await source).list(query),
    rename: async (sessionId, name) => (await source).rename(sessionId, name),
    archive: async (sessionId) => (await source).archive(sessionId),
    delete: async (sessionId) => (await source).delete(sessionId),
    search: async (text) => (await source).search(text),
    models: async () => (await source).models(),
    tree: async (sessionId) => (await source).tree(sessionId),
    compare: async (sessionId, entries) => (await source).compare(sessionId, entries),
    files: async (query) => (await source).files(query),
    keepImage: async (sessionId, image) => (await source).keepImage(sessionId, image),
    jobs: {
      list: async (sessionId) => (await source).jobs.list(sessionId),
      read: async (sessionId, jobId) => (await source).jobs.read(sessionId, jobId),
      stop: async (sessionId, jobId) => (await source).jobs.stop(sessionId, jobId),
    },
    close: async () => (await source).close(),
  }
}
