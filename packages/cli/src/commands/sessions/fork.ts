import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { findSession } from '../../host/find-session.ts'
import { write, printJson, type Io } from '../../command-line/io.ts'
import { findEntry } from '../../sessions/find-entry.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'
import { snakeNames } from '../../text/json-text.ts'

/** Prints the id of the new session. */
export async function runSessionsFork(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = ''] = invocation.positionals
  const at = textOption(invocation, 'at')
  const name = textOption(invocation, 'name')
  using progress = new Progress(io.stderr, 'Copying the session')
  const fork = await withStore(io, async (store) => {
    const from = await findSession(store, reference, { cwd: io.cwd })
    const header = from.cwd === undefined ? {} : { cwd: from.cwd }
    await using source = await store.open(from.id, { readOnly: true })
    const entryId = at === undefined ? undefined : await findEntry(source, at)
    const id =
      entryId === undefined ? await source.copyAll(header) : await source.createBranchedSession(entryId, header)
    if (name !== undefined) {
      await using made = await store.open(id)
      await made.appendSessionInfo(harmlessLine(name))
    }
    return { id, parentSession: from.id, ...(entryId !== undefined && { parentEntry: entryId }) }
  })
  progress.close()
  if (flag(invocation, 'json')) await printJson(io, snakeNames(fork))
  else await write(io.stdout, `${fork.id}\n`)
  return exitCodes.ok
}
