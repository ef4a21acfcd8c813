import { openFileStore } from '@tapetree/session/stores/file'
import { systemClock } from '@tapetree/session/util/wait'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { resumeRewind } from '../../../packages/agent/src/agent/rewind.ts'
import { WorkspaceSnapshots } from '../../../packages/agent/src/workspace/workspace-snapshots.ts'
import { isEqual, readFiles, type Files } from './workspaces.ts'

export interface Trial {
  folder: string
  sessionId: string
  target: string
  /** Now, and after going back. */
  from: TrialState
  to: TrialState
}

interface TrialState {
  files: Files
  leafId: string | null
}

/** A session whose agent has changed files in every way since its last message. */
export async function prepareTrial(folder: string): Promise<Trial> {
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
  const leafId = await session.appendMessage('assistant', 'What do you want?')
  const target = await session.appendMessage('user', 'change everything')
  snapshots.runStarted({ runId: 'run', entryId: target })
  await snapshots.selfContained()
  const to = { files: readFiles(work), leafId }
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
  const from = { files: readFiles(work), leafId: session.leafId }
  await session.close()
  return { folder, sessionId: session.id, target, from, to }
}

/**
 * After a failure: the files and the conversation are both as before or both at the target, or an open restore brings them there
 * when it is finished or undone. Snapshots work.
 */
export async function checkTrial(
  copy: string,
  { sessionId, from, to }: Trial,
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
      await resumeRewind(direction, { session, files: snapshots })
      expected = [direction === 'finish' ? to : from]
    }
    const files = readFiles(work)
    const { leafId } = session
    if (!expected.some((each) => isEqual(files, each.files) && leafId === each.leafId)) {
      const entry = leafId === from.leafId ? 'before' : leafId === to.leafId ? 'at the target' : 'elsewhere'
      const after = isOpen ? ` after ${direction}` : ''
      complain(`${name}: the conversation is ${entry} and the files are ${JSON.stringify([...files])}${after}`)
    }
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
