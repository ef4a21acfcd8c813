// A fresh process: lists the sessions of a folder, or does what it is compared with, and prints what that took.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'

export interface Listed {
  how: 'list' | 'bare' | 'baseline'
  ms: number
  /** Since the process began, loading of all code included. */
  sinceStartMs: number
  rssBytes: number
  sessions: number
  first: string
  /** Logs that were opened. */
  reads: number
}

let reads = 0
const { openSync } = fs
fs.openSync = (path, ...rest) => {
  if (String(path).endsWith('events.jsonl')) reads++
  return openSync(path, ...rest)
}
syncBuiltinESMExports()

const [folder, how] = process.argv.slice(2) as [string, Listed['how']]
const start = performance.now()
const store = openFileStore({ folder })
const ids = await sessionIds()
const now = performance.now()
const listed: Listed = {
  how,
  ms: now - start,
  sinceStartMs: now,
  rssBytes: process.resourceUsage().maxRSS * 1024,
  sessions: ids.length,
  first: ids[0] ?? '',
  reads,
}
console.log(JSON.stringify(listed))
await store.close()

async function sessionIds(): Promise<string[]> {
  if (how === 'baseline') return []
  if (how === 'list') return (await store.list({ limit: 100 })).sessions.map(({ id }) => id)
  const names = fs.readdirSync(folder)
  return names.filter((name) => fs.statSync(join(folder, name, 'events.jsonl'), { throwIfNoEntry: false })?.isFile())
}
