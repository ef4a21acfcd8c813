// A process without rights (root may read everything): makes a log unreadable, and opens it. `open-denied.ts <root folder>`
import { chmodSync, chownSync, mkdirSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'
import { tryOpening } from './odd-places.ts'

const [root = ''] = process.argv.slice(2)
const nobody = 65534
const store = openFileStore({ folder: root })
for (const [id, mode] of [
  ['denied', 0o000],
  ['read-only', 0o400],
] as const) {
  mkdirSync(join(root, id))
  writeFileSync(join(root, id, 'events.jsonl'), '{"type":"session","id":"s","version":1}\n')
  chmodSync(join(root, id, 'events.jsonl'), mode)
  if (process.getuid?.() === 0)
    for (const path of ['.', id, join(id, 'events.jsonl')]) chownSync(join(root, path), nobody, nobody)
}
if (process.getuid?.() === 0) process.setuid?.(nobody)
const problems = (await tryOpening(store, 'denied')).map((problem) => `a file nobody may read: ${problem}`)
const readable = await store.open('read-only', { readOnly: true })
if (readable.header?.id !== 's') problems.push('a file that may only be read is not read')
await readable.close()
writeSync(1, `${JSON.stringify(problems)}\n`)
