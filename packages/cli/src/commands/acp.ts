import { flag, textOption, type CommandRun } from '../command-line/command.ts'
import { exitCodes } from '../command-line/exit-code.ts'
import { usageFailure } from '../command-line/failure.ts'

/** `tapetree acp`. The protocol is loaded first, and everything else when the editor has its first answer. */
export const runAcp: CommandRun = async (invocation, io) => {
  if (io.stdin.isTTY) {
    throw usageFailure('An editor starts this command and talks to it over stdin and stdout.', [
      'tapetree',
      'tapetree acp --help',
    ])
  }
  const server = textOption(invocation, 'connect')
  if (server !== undefined) {
    const { serveFrom } = await import('../acp/serve-from.ts')
    return serveFrom(server, { invocation, io, allowInsecure: flag(invocation, 'allow-insecure') })
  }
  const { serveAcp, stdioOf } = await import('../acp/serve-acp.ts')
  await serveAcp({
    stream: stdioOf(io),
    signal: io.signal,
    takesServers: true,
    login: 'Run `tapetree login <provider>` in a terminal, then start a session again.',
    open: async (editor, editorName) => {
      const [{ LocalSessions }, { discardUnused, flagsOf }] = await Promise.all([
        import('../acp/local-sessions.ts'),
        import('./chat/session.ts'),
      ])
      const model = textOption(invocation, 'model')
      return LocalSessions.start({ io, editor, editorName, flags: flagsOf(invocation), model, discardUnused })
    },
  })
  return exitCodes.ok
}
