import { openFileStore } from '@tapetree/session/stores/file'
import { systemClock } from '@tapetree/session/util/wait'
import { execFileSync, spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { WorkspaceSnapshots } from '../../../packages/agent/src/workspace/workspace-snapshots.ts'
import { readFiles, type Files } from './workspaces.ts'

export interface KillCounts {
  restore_kills: number
  git_kills: number
}

/** Kills a restore before each of its steps, and the whole program before and after each git command. */
export async function killEverywhere(options: {
  folder: string
  /** Tries only every so many-th step. */
  every: number
  complain: (problem: string) => void
}): Promise<KillCounts> {
  const { folder, every, complain } = options
  // The store of a workspace depends on its path, so every trial has the same.
  const copy = join(folder, 'trial')
  const place = await prepare(copy)
  const saved = join(folder, 'saved')
  cpSync(copy, saved, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
  const gitFolder = makeGit(folder)
  const counts: KillCounts = { restore_kills: 0, git_kills: 0 }
  const reset = (): void => {
    rmSync(copy, { recursive: true, force: true })
    cpSync(saved, copy, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
  }

  // Every step of the restore itself.
  const whole = runKilled(copy, place, { killAt: 0 })
  if (whole.status !== 0) complain(`a restore without a kill failed: ${whole.stderr.toString('utf8').slice(0, 400)}`)
  const steps = Number(whole.stdout.toString('utf8'))
  for (let killAt = 1; killAt <= steps; killAt += every) {
    reset()
    const { signal } = runKilled(copy, place, { killAt })
    if (signal !== 'SIGKILL') complain(`step ${killAt} of ${steps} was not reached`)
    await check(copy, place, {
      name: `killed at step ${killAt}`,
      direction: killAt % 2 === 0 ? 'undo' : 'finish',
      complain,
    })
    counts.restore_kills += 1
  }

  // Before and after each git command.
  const counter = join(folder, 'counter')
  for (const when of ['before', 'after'] as const) {
    for (let killAt = 1; ; killAt += every) {
      reset()
      writeFileSync(counter, '0')
      const environment = {
        ...process.env,
        PATH: [gitFolder, process.env['PATH']].join(delimiter),
        HOME: copy,
      }
      writeFileSync(join(gitFolder, 'plan'), `${counter} ${killAt} ${when}`)
      const { signal } = runKilled(copy, place, { killAt: 0, environment })
      if (signal !== 'SIGKILL') break
      const direction = killAt % 2 === 0 ? 'undo' : 'finish'
      await check(copy, place, { name: `killed ${when} git command ${killAt}`, direction, complain })
      counts.git_kills += 1
    }
  }
  return counts
}

interface Prepared {
  folder: string
  sessionId: string
  target: string
  /** The files now and at the target. */
  from: Files
  to: Files
}

/** A session whose agent has changed files in every way. */
async function prepare(folder: string): Promise<Prepared> {
  const work = join(folder, 'work')
  mkdirSync(join(work, 'sub'), { recursive: true })
  for (const name of ['a', 'b', 'sub/c', 'sub/d', 'e']) writeFileSync(join(work, name), `first ${name}\n`)
  chmodSync(join(work, 'e'), 0o755)
  const git = (...command: string[]): void => void execFileSync('git', ['-C', work, ...command], { stdio: 'ignore' })
  git('init', '--quiet')
  git('add', '--all')
  git('-c', 'user.name=A', '-c', 'user.email=a@b.c', 'commit', '--quiet', '--message', 'first')
  const store = openFileStore({ folder: join(folder, 'sessions') })
  const session = await store.create({ cwd: work })
  const snapshots = new WorkspaceSnapshots({
    session,
    folder: work,
    storesFolder: join(folder, 'stores'),
    clock: systemClock,
  })
  const target = await session.appendMessage('user', 'change everything')
  snapshots.runStarted({ runId: 'run', entryId: target })
  await snapshots.selfContained()
  const to = readFiles(work)
  const call = { runId: 'run', callId: 'call', access: [{ type: 'tool' as const, name: 'x', readOnly: false }] }
  await snapshots.beforeCall(call)
  writeFileSync(join(work, 'a'), 'second a\n')
  rmSync(join(work, 'b'))
  rmSync(join(work, 'sub'), { recursive: true })
  writeFileSync(join(work, 'sub'), 'a file now\n')
  chmodSync(join(work, 'e'), 0o644)
  mkdirSync(join(work, 'new'))
  writeFileSync(join(work, 'new', 'f'), 'new\n')
  snapshots.afterCall(call)
  await snapshots.settled()
  const from = readFiles(work)
  await session.close()
  return { folder, sessionId: session.id, target, from, to }
}

const program = fileURLToPath(new URL('killed.ts', import.meta.url))

function runKilled(
  copy: string,
  { sessionId, target }: Prepared,
  { killAt, environment }: { killAt: number; environment?: NodeJS.ProcessEnv },
): SpawnSyncReturns<Buffer> {
  return spawnSync(process.execPath, ['-C', '@tapetree/source', program, copy, sessionId, target, String(killAt)], {
    ...(environment && { env: environment }),
  })
}

/** After a kill: files are as before or at the target, the restore can be finished or undone, and snapshots work. */
async function check(
  copy: string,
  { sessionId, from, to }: Prepared,
  { name, direction, complain }: { name: string; direction: 'finish' | 'undo'; complain: (problem: string) => void },
): Promise<void> {
  const work = join(copy, 'work')
  const store = openFileStore({ folder: join(copy, 'sessions') })
  const session = await store.open(sessionId)
  try {
    const snapshots = new WorkspaceSnapshots({
      session,
      folder: work,
      storesFolder: join(copy, 'stores'),
      clock: systemClock,
    })
    const isOpen = session.openRestore !== undefined
    let expected = [from, to]
    if (isOpen) {
      await snapshots.resumeRestore(direction)
      expected = [direction === 'finish' ? to : from]
    }
    const files = readFiles(work)
    if (!expected.some((each) => isEqual(files, each)))
      complain(`${name}: the files are ${JSON.stringify([...files])} ${isOpen ? `after ${direction}` : ''}`)
    writeFileSync(join(work, 'later'), 'later\n')
    const call = { runId: 'run2', callId: 'later', access: [{ type: 'tool' as const, name: 'x', readOnly: false }] }
    await snapshots.beforeCall(call)
    await snapshots.settled()
    const recorded = session.lastSnapshot?.tree
    const changes = recorded === undefined ? [] : await (await snapshots.store()).diff(recorded, recorded)
    if (snapshots.state.type !== 'on' || changes.length > 0 || session.lastSnapshot?.callId !== 'later')
      complain(`${name}: the next snapshot does not work (${JSON.stringify(snapshots.state)})`)
  } catch (error) {
    complain(`${name}: ${(error as Error).message}`)
  } finally {
    await session.close()
  }
}

function isEqual(left: Files, right: Files): boolean {
  return left.size === right.size && [...left].every(([path, content]) => right.get(path) === content)
}

/** A program `git` that kills its parent before or after one of its calls. */
function makeGit(folder: string): string {
  const place = join(folder, 'bin')
  mkdirSync(place)
  const real = execFileSync('sh', ['-c', 'command -v git']).toString('utf8').trim()
  const script = `#!/bin/sh
read counter at when < '${place}/plan'
n=$(( $(cat "$counter") + 1 )); echo $n > "$counter"
if [ "$n" = "$at" ] && [ "$when" = before ]; then kill -9 $PPID; exit 1; fi
'${real}' "$@"; code=$?
if [ "$n" = "$at" ]; then kill -9 $PPID; fi
exit $code
`
  writeFileSync(join(place, 'git'), script)
  chmodSync(join(place, 'git'), 0o755)
  return place
}
