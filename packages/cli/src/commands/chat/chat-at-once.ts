import type { Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { lateSource } from './late-source.ts'
import type { Io } from '../../command-line/io.ts'
import type { ChatLook, ChatOptions } from '../../tui/chat-options.ts'
import type { OpenedSession } from '../../session-source.ts'
import { ChatProblems } from './problems.ts'
import { lookOf, showChat } from './screen.ts'
import { forgetStart } from './start-mark.ts'

export interface ChatAtOnceOptions {
  invocation: Invocation
  io: Io
  terminal: Omit<ChatLook, 'colour'>
}

/** Loading blocks the process: the first frame is out before. */
const loadAfterMs = 30

/** A chat whose screen stands before anything behind it is loaded. What goes wrong now went well the last time: then all is asked again. */
export async function chatAtOnce({ invocation, io, terminal }: ChatAtOnceOptions): Promise<ExitCode> {
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
