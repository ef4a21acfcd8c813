import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { counted } from '../../text/amounts.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { write, printJson, type Io } from '../../command-line/io.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'

/** Prints the id of the new session. */
export async function runSessionsImport(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [file = ''] = invocation.positionals
  const name = textOption(invocation, 'name')
  using progress = new Progress(io.stderr, 'Reading the bundle')
  const bytes: AsyncIterable<Uint8Array> = file === '-' ? io.stdin : createReadStream(resolve(io.cwd, file))
  const made = await withStore(io, async (store) => {
    await using session = await store.unpack(bytes)
    if (name !== undefined) await session.appendSessionInfo(harmlessLine(name))
    return session.info
  })
  progress.close()
  if (flag(invocation, 'json')) await printJson(io, { id: made.id, message_count: made.messageCount })
  else {
    await write(
      io.stderr,
      `Imported ${counted(made.messageCount, 'message')}. The session belongs to no folder: sessions list --all shows it.\n`,
    )
    await write(io.stdout, `${made.id}\n`)
  }
  return exitCodes.ok
}
