import { textOption, type CommandRun } from '../command-line/command.ts'
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
  const { serveAcp } = await import('../acp/serve-acp.ts')
  await serveAcp({
    io,
    open: async (editor, editorName) => {
      const [{ EditorSessions }, { discardUnused, flagsOf }] = await Promise.all([
        import('../acp/editor-sessions.ts'),
        import('./chat/session.ts'),
      ])
      const model = textOption(invocation, 'model')
      return EditorSessions.open({ io, editor, editorName, flags: flagsOf(invocation), model, discardUnused })
    },
  })
  return exitCodes.ok
}
