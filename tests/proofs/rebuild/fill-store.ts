import { cpSync, statSync, truncateSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { text } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'

/** Three sessions with all that derived files tell of: names, queues, branches, compactions, labels, permissions. */
export async function fillStore(folder: string): Promise<string[]> {
  const store = openFileStore({ folder })
  const ids = ['first', 'second', 'third']
  for (const id of ids) {
    await using session = await store.create({ id, name: `Session ${id}`, cwd: `/somewhere/${id}` })
    const start = await session.appendMessage('user', [text(`${id} begins with words`)])
    await session.appendMessage('assistant', [text('an answer that is left behind')])
    await session.branch(start)
    const kept = await session.appendMessage('user', [text('another way')])
    await session.appendModelChange('some', 'model')
    await session.appendCompaction('what came before', kept, 1000)
    await session.setLabel(start, 'start')
    await session.submit('the first that waits')
    await session.submit('the second that waits', { clientId: 'phone' })
    await session.append({
      type: 'permission_request',
      permissionRequest: { requestId: `ask-${id}`, tool: 'bash', title: 'ls', options: [] },
    })
  }
  await askOnce(store)
  return ids
}

/** Keeps the derived files as they are now, then lets the sessions go on, so that there are older ones to put back. */
export async function moveOn(folder: string, older: string, ids: readonly string[]): Promise<void> {
  cpSync(folder, older, { recursive: true })
  const store = openFileStore({ folder })
  for (const id of ids) {
    await using session = await store.open(id)
    await session.appendMessage('assistant', [text('and goes on')])
    await session.submit('the third that waits')
  }
  await askOnce(store)
}

/** Lets the sessions go on once more, keeps the derived files of that, and takes it back: a backup that is younger than the logs. */
export async function peekAhead(folder: string, newer: string, ids: readonly string[]): Promise<void> {
  const logs = ids.map((id) => join(folder, id, 'events.jsonl'))
  const sizes = logs.map((log) => statSync(log).size)
  const now = await mkdtemp(join(dirname(newer), 'tapetree-now-'))
  cpSync(folder, now, { recursive: true })
  const store = openFileStore({ folder })
  for (const id of ids) {
    await using session = await store.open(id)
    await session.appendMessage('user', [text('words that never were')])
    await session.submit('the fourth that waits')
    await session.appendSessionInfo('A name to come')
  }
  await askOnce(store)
  cpSync(folder, newer, { recursive: true })
  // The logs stay the files they are: only then could an index take them for those that it knows.
  for (const [index, log] of logs.entries()) truncateSync(log, sizes[index])
  cpSync(now, folder, { recursive: true, filter: (from) => !from.endsWith('events.jsonl') })
  await rm(now, { recursive: true })
}

async function askOnce(store: ReturnType<typeof openFileStore>): Promise<void> {
  await store.list()
  await store.search({ text: 'words' })
  await store.close()
}
