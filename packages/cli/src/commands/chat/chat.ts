import type { Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { isInteractive, type Io } from '../../command-line/io.ts'
import { readStart, forgetStart } from './start-mark.ts'
import type { ChatLook, ChatOptions } from '../../tui/chat-options.ts'
import type { OpenedSession, SessionSource } from '../../session-source.ts'
import { ChatProblems } from './problems.ts'
import { lookOf, showChat } from './screen.ts'

/** The chat. Where nothing has to be asked, its screen stands before all that is behind it is loaded. */
export async function chat(invocation: Invocation, io: Io): Promise<ExitCode> {
  if (!isInteractive(io)) {
    throw usageFailure('The chat needs a terminal to read from and to draw on.', ['tapetree run "<prompt>"'])
  }
  const start = needsAnswers(invocation) ? undefined : await readStart(io)
  if (start) return chatAtOnce({ invocation, io, terminal: start.terminal })
  return (await import('./here.ts')).chatHere(invocation, io)
}

/** A session that is named may be one of another folder, and a model that is named has to be found. */
function needsAnswers({ values }: Invocation): boolean {
  const isNamed = ['fork', 'session', 'model'].some((name) => values[name] !== undefined)
  return isNamed || typeof values['resume'] === 'string'
}

interface ChatAtOnceOptions {
  invocation: Invocation
  io: Io
  terminal: Omit<ChatLook, 'colour'>
}

/** Loading blocks the process: the first frame is out before. */
const loadAfterMs = 30

/** A chat whose screen stands before anything behind it is loaded. What goes wrong now went well the last time: then all is asked again. */
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
  // Where there is nothing behind the screen, nobody can attach either.
  const host = { listen: () => behind.then(({ listen }) => listen()).catch(() => undefined) }
  const remarks: ChatOptions['remarks'] = (tell) => problems.listen(tell)
  const look = lookOf(invocation, terminal, io)
  const prompt = invocation.positionals.join(' ')
  setTimeout(() => loading.resolve(), loadAfterMs)
  try {
    const source = lateSource(behind.then((each) => each.source))
    const end = await showChat({ io, source, first: isPicked ? undefined : first, look, remarks, prompt, host })
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

/** A source that is still being made: whoever asks waits for it. */
function lateSource(source: Promise<SessionSource>): SessionSource {
  // Who asks is told what went wrong; nobody else has to be.
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
    files: async (query) => (await source).files(query),
    keepImage: async (sessionId, image) => (await source).keepImage(sessionId, image),
    close: async () => (await source).close(),
  }
}
