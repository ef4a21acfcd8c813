import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { createVariant, recordVariant, removeCopy } from '../../../packages/agent/src/workspace/variants.ts'
import { SnapshotStore } from '../../../packages/agent/src/workspace/snapshot-store.ts'
import { planCopies } from '../../../packages/agent/src/workspace/working-copy.ts'
import { chooseVariant, variantPlaces } from '../../../packages/cli/src/variants/choose-variant.ts'
import { testIo } from '../../../packages/cli/src/testing/test-io.ts'
import { compareFiles, editAs, gitHash, makeWorkspace, mergedFiles, readFiles, writeFiles } from './files.ts'

/** Three variants edit their copies, the user edits the folder, and one variant is chosen. */
export async function playChoice(options: {
  folder: string
  random: () => number
  kill: boolean
}): Promise<{ problems: string[]; phase: string }> {
  const { folder, random, kill } = options
  const problems: string[] = []
  mkdirSync(folder)
  const work = join(folder, 'work')
  makeWorkspace(work, { random, git: random() < 0.5 })
  const git = gitHash(work)
  const base = readFiles(work)
  const env = { HOME: join(folder, 'home'), TAPETREE_HOME: folder, PATH: process.env['PATH'] }
  const io = testIo({ env, cwd: work, home: join(folder, 'home') })
  const store = openFileStore({ folder: join(folder, 'sessions') })
  const places = variantPlaces(io, store)
  const files = await SnapshotStore.open({ folder: work, storesFolder: places.storesFolder })
  const snapshot = await files.take()
  const plan = await planCopies(files, { tree: snapshot.tree, count: 3, folder: places.copiesFolder })
  const made = []
  for (const number of [1, 2, 3]) {
    const session = await store.create({ cwd: work })
    const variants = { id: 'one-prompt', number, count: 3 }
    const copy = await createVariant(session, { places, store: files, folder: work, snapshot, plan, variants })
    if (compareFiles(readFiles(copy.folder), base).length > 0) problems.push('a copy differs from the folder')
    const wanted = editAs('variant', { files: base, random })
    writeFiles(copy.folder, wanted)
    await recordVariant(session, { places, by: 'agent' })
    made.push({ sessionId: session.id, wanted })
    await session.close()
  }
  const user = editAs('user', { files: base, random })
  writeFiles(work, user)
  const chosen = made[Math.floor(random() * made.length)]
  if (!chosen) return { problems, phase: '' }
  const { sessionId } = chosen
  let phase = ''
  if (kill) {
    await killChoice({
      folder,
      sessionId,
      at: 1 + Math.floor(random() * commands),
      when: random() < 0.5 ? 'before' : 'after',
    })
    phase = await phaseOf(store, { sessionId, copies: readdirSync(places.copiesFolder).length })
    // The user goes on with their own files.
    user.set('user only', { content: `after the kill ${random()}\n`, mode: 'file' })
    writeFiles(work, user, ['user only'])
  }
  try {
    await chooseVariant(sessionId, { io, store, conflicts: 'keep' })
    const expected = mergedFiles({ base, variant: chosen.wanted, user })
    problems.push(...compareFiles(readFiles(work), expected))
    if (existsSync(places.copiesFolder) && readdirSync(places.copiesFolder).length > 0) problems.push('a copy is left')
    if (readdirSync(join(files.path, 'copies')).length > 0) problems.push('an index of a copy is left')
    for (const { sessionId: id, wanted } of made) {
      await using session = await store.open(id)
      await removeCopy(session, places)
      const { outcome, result = '' } = session.workingCopy ?? {}
      if (outcome !== (id === sessionId ? 'chosen' : 'discarded')) problems.push(`a copy is recorded as ${outcome}`)
      // What was discarded can still be read.
      const changed = [...wanted].filter(([path, { mode }]) => mode !== 'link' && !path.startsWith('ignored/'))
      const [path = '', file] = changed[Math.floor(random() * changed.length)] ?? []
      const version = await files.versionAt(result, path)
      if (!version || (await files.read(version.id)).toString('latin1') !== file?.content)
        problems.push(`the store has lost ${path} of a variant`)
    }
  } catch (error) {
    problems.push((error as Error).stack ?? String(error))
  }
  if (gitHash(work) !== git) problems.push('the git folder was changed')
  await store.close()
  return { problems: problems.slice(0, 3), phase }
}

async function phaseOf(
  store: SessionStore,
  { sessionId, copies }: { sessionId: string; copies: number },
): Promise<string> {
  await using session = await store.open(sessionId, { readOnly: true })
  if (session.workingCopy?.outcome === undefined) return 'before the choice'
  if (session.openRestore) return 'while files were merged'
  return copies > 0 ? 'while copies were removed' : 'after the end'
}

const program = fileURLToPath(new URL('choose.ts', import.meta.url))
/** About as many git commands as a choice runs. */
const commands = 60

/** Kills the program that chooses, before or after one of its git commands. */
async function killChoice(options: {
  folder: string
  sessionId: string
  at: number
  when: 'before' | 'after'
}): Promise<void> {
  const { folder, sessionId, at, when } = options
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  const script = `#!/bin/sh
printf x >> '${bin}/counter'
n=$(wc -c < '${bin}/counter')
if [ "$n" = ${at} ] && [ ${when} = before ]; then kill -9 $PPID; exit 1; fi
'${real}' "$@"; code=$?
if [ "$n" = ${at} ]; then kill -9 $PPID; fi
exit $code
`
  writeFileSync(join(bin, 'git'), script, { mode: 0o755 })
  const args = ['-C', '@tapetree/source', program, folder, sessionId]
  const env = { ...process.env, PATH: [bin, process.env['PATH']].join(delimiter) }
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'], env })
  await once(child, 'exit')
}
