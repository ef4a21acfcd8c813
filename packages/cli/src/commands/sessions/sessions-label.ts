import type { SessionStore } from '@tapetree/session'
import { flag, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { findSession } from '../../host/find-session.ts'
import { write, type Io } from '../../command-line/io.ts'
import { printJson } from '../../command-line/print-json.ts'
import { changeSession } from '../../host/change-session.ts'
import { findEntry } from '../../sessions/find-entry.ts'
import { withStore } from '../../sessions/with-store.ts'

export async function runSessionsLabel(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = '', entryReference = '', ...words] = invocation.positionals
  const label = harmlessLine(words.join(' ')).trim()
  const done = await withStore(io, async (store) => {
    const found = await findSession(store, reference, { cwd: io.cwd })
    const entryId = await entryIn(store, found.id, entryReference)
    await changeSession(store, found.id, {
      here: (session) => session.setLabel(entryId, label),
      there: (handle) => handle.run('label', { entry_id: entryId, label }),
    })
    return { id: found.id, entryId }
  })
  if (flag(invocation, 'json')) await printJson(io, { id: done.id, entry_id: done.entryId, label })
  else if (label === '') await write(io.stderr, `Entry ${done.entryId} has no label any more.\n`)
  else await write(io.stderr, `Entry ${done.entryId} is labelled ${JSON.stringify(label)}.\n`)
  return exitCodes.ok
}

async function entryIn(store: SessionStore, sessionId: string, reference: string): Promise<string> {
  await using session = await store.open(sessionId, { readOnly: true })
  return await findEntry(session, reference)
}
