import { flag, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { findSession } from '../../host/find-session.ts'
import { write, type Io } from '../../command-line/io.ts'
import { printJson } from '../../command-line/print-json.ts'
import { changeSession } from '../../host/change-session.ts'
import { withStore } from '../../sessions/with-store.ts'

export async function runSessionsRename(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = '', ...words] = invocation.positionals
  const name = harmlessLine(words.join(' ')).trim()
  const id = await withStore(io, async (store) => {
    const found = await findSession(store, reference, { cwd: io.cwd })
    await changeSession(store, found.id, {
      here: (session) => session.appendSessionInfo(name),
      there: (handle) => handle.run('rename', { name }),
    })
    return found.id
  })
  if (flag(invocation, 'json')) await printJson(io, { id, name })
  else await write(io.stderr, `Session ${id} is now called ${JSON.stringify(name)}.\n`)
  return exitCodes.ok
}
