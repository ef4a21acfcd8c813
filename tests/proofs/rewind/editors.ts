import { memoryStore } from '@tapetree/session'
import { systemClock } from '@tapetree/session/util/wait'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { blobId } from '../../../packages/agent/src/workspace/apply-restore.ts'
import { WorkspaceSnapshots } from '../../../packages/agent/src/workspace/workspace-snapshots.ts'

const fileCount = 100

interface Save {
  type: 'replaced' | 'last'
  name: string
  content: string
}

/** Restores a folder again and again while another program saves files in it. No save may be lost. */
export async function editDuringRestores(options: {
  folder: string
  saves: number
  seed: number
}): Promise<{ restores: number; skipped: number; lost: string[] }> {
  const { folder, saves, seed } = options
  const work = join(folder, 'work')
  mkdirSync(work, { recursive: true })
  const names = Array.from({ length: fileCount }, (_, index) => `f${index}.txt`)
  const writeAll = (content: string): void => {
    for (const name of names) writeFileSync(join(work, name), `${content} ${name}\n`)
  }
  writeAll('first')
  const session = await memoryStore().create({ cwd: work })
  const stores = join(folder, 'stores')
  const snapshots = new WorkspaceSnapshots({ session, folder: work, storesFolder: stores, clock: systemClock })
  const moments: string[] = []
  for (const content of ['first', 'second']) {
    writeAll(content)
    const entryId = await session.appendMessage('user', content)
    snapshots.runStarted({ runId: 'run', entryId })
    await snapshots.settled()
    moments.push(entryId)
  }

  const program = fileURLToPath(new URL('editor.ts', import.meta.url))
  const child = spawn(process.execPath, [program, work, String(fileCount), String(saves), String(seed)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  const editing = { isOver: false }
  const over = once(child, 'close').then(() => (editing.isOver = true))
  let restores = 0
  let skipped = 0
  // At least one restore works beside the editor, and one comes after it.
  for (let index = 0; !editing.isOver || index < 2; index += 1) {
    const prepared = await snapshots.prepare(moments[index % 2] ?? null)
    const all = [...prepared.restored, ...prepared.kept, ...prepared.conflicts]
    const done = await snapshots.restore(prepared, new Map(all.map(({ path }) => [path, 'take'])))
    restores += 1
    skipped += done.skipped.length
  }
  await over

  const store = await snapshots.store()
  const kept = new Set(keptCopies(join(store.path, 'kept')))
  const lost: string[] = []
  for (const line of said.split('\n').filter(Boolean)) {
    const { name, content } = JSON.parse(line) as Save
    const isThere = readFileSync(join(work, name), 'utf8') === content || kept.has(content)
    const isRecorded = isThere || (await store.hasVersion(blobId(Buffer.from(content), '0'.repeat(store.idLength))))
    if (!isRecorded) lost.push(`${name}: ${content.trim()}`)
  }
  await session.close()
  rmSync(folder, { recursive: true, force: true })
  return { restores, skipped, lost }
}

function keptCopies(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
    return entries.map((each) => readFileSync(join(each.parentPath, each.name), 'utf8'))
  } catch {
    return []
  }
}
