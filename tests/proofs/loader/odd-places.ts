import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SessionError, type SessionStore } from '@tapetree/session'
import { openFileStore, type FilePort } from '@tapetree/session/stores/file'
import { unsyncedPort } from '../../corpus/unsynced-port.ts'

/** What may lie where a log is expected. Each is refused with a reason, at once, and hides no other session. */
const oddPlaces: [name: string, make: (log: string) => void][] = [
  ['a folder', (log) => mkdirSync(log)],
  ['a full folder', (log) => mkdirSync(join(log, 'inside'), { recursive: true })],
  ['a pipe', (log) => execFileSync('mkfifo', [log])],
  ['a link to a device', (log) => symlinkSync('/dev/zero', log)],
  ['a link to another file', (log) => symlinkSync('/etc/passwd', log)],
  ['a link to itself', (log) => symlinkSync(log, log)],
  ['a link to nothing', (log) => symlinkSync('/nowhere/at/all', log)],
  ['nothing', () => undefined],
]

export async function tryOddPlaces(root: string): Promise<{ tried: number; failures: string[] }> {
  const withIndex = await tryIn(join(root, 'with-index'), {})
  const withoutIndex = await tryIn(join(root, 'without-index'), { port: unsyncedPort() })
  return { tried: oddPlaces.length, failures: [...withIndex, ...withoutIndex] }
}

async function tryIn(root: string, options: { port?: FilePort }): Promise<string[]> {
  const store = openFileStore({ folder: root, ...options })
  const good = await store.create({ id: 'good' })
  await good.appendMessage('user', [{ type: 'text', text: { content: 'still here' } }])
  await good.close()
  writeFileSync(join(root, 'a-file-and-no-folder'), 'x')
  const failures: string[] = []
  for (const [index, [name, make]] of oddPlaces.entries()) {
    const id = `odd-${index}`
    mkdirSync(join(root, id))
    make(join(root, id, 'events.jsonl'))
    for (const problem of await tryOpening(store, id)) failures.push(`${name}: ${problem}`)
  }
  const { sessions } = await store.list()
  if (!sessions.some(({ id }) => id === 'good')) failures.push('the list lost the good session')
  if ((await store.search({ text: 'still' })).length !== 1) failures.push('the search lost the good session')
  await store.close()
  return failures
}

export async function tryOpening(store: SessionStore, id: string): Promise<string[]> {
  const ways: [string, () => Promise<unknown>][] = [
    ['open to read', () => store.open(id, { readOnly: true })],
    ['open to write', () => store.open(id)],
    ['verify', () => store.verify(id)],
  ]
  const problems: string[] = []
  for (const [way, work] of ways) {
    const outcome = await work().then(
      () => 'it is taken for a session',
      (error: unknown) => (error instanceof SessionError ? undefined : `rejects with ${String(error)}`),
    )
    if (outcome !== undefined) problems.push(`${way}: ${outcome}`)
  }
  return problems
}
