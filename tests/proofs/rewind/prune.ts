import { memoryStore } from '@tapetree/session'
import { systemClock } from '@tapetree/session/util/wait'
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { SnapshotStore } from '../../../packages/agent/src/workspace/snapshot-store.ts'
import { RestoreProblem, WorkspaceSnapshots } from '../../../packages/agent/src/workspace/workspace-snapshots.ts'
import { Mutator, type Random } from './mutate.ts'
import { isEqual, isLeftOut, readFiles, type Files, type Templates } from './workspaces.ts'

/** When the user prunes: after a kill that left borrowed objects, after they were copied, or while they are copied. */
export const pruneMoments = ['killed', 'copied', 'copying'] as const

/**
 * The first snapshot borrows objects of the user's repository. The user rewrites the history and prunes, so that these are
 * gone. Snapshots must still work, and what a log names comes back byte for byte or is reported as missing.
 */
export async function pruneBetweenSnapshots(options: {
  moment: (typeof pruneMoments)[number]
  folder: string
  templates: Templates
  random: Random
}): Promise<string | undefined> {
  const { moment, folder, templates, random } = options
  mkdirSync(folder)
  const { workspace } = templates.copy('git', join(folder, 'work'))
  const session = await memoryStore().create({ cwd: workspace })
  const place = { folder: workspace, storesFolder: join(folder, 'stores'), clock: systemClock }
  const mutator = new Mutator(workspace, { random })
  try {
    if (moment === 'killed') {
      await (await SnapshotStore.open(place)).take()
      prune(workspace)
    }
    const snapshots = new WorkspaceSnapshots({ ...place, session })
    const say = async (): Promise<{ entryId: string; files: Files }> => {
      const entryId = await session.appendMessage('user', 'next')
      snapshots.runStarted({ runId: 'run', entryId })
      await snapshots.settled()
      return { entryId, files: recordedFiles(workspace) }
    }
    const first = await say()
    if (moment === 'copied') await snapshots.selfContained()
    if (moment !== 'killed') prune(workspace)
    await snapshots.selfContained()
    mutator.change()
    mutator.change()
    const second = await say()
    mutator.change()
    const restored = async ({ entryId, files }: typeof first): Promise<string | undefined> => {
      const prepared = await snapshots.prepare(entryId)
      const all = [...prepared.restored, ...prepared.kept, ...prepared.conflicts]
      await snapshots.restore(prepared, new Map(all.map(({ path }) => [path, 'take'])))
      return isEqual(recordedFiles(workspace), files) ? undefined : 'the files did not come back'
    }
    for (const each of [second, first]) {
      const before = recordedFiles(workspace)
      try {
        const problem = await restored(each)
        if (problem !== undefined) return problem
      } catch (error) {
        // Only what was borrowed when it was pruned may be missing, and then nothing is touched.
        const isMissing = error instanceof RestoreProblem && error.code === 'files-missing'
        if (!isMissing || moment !== 'copying' || each === second) return (error as Error).message
        if (!isEqual(recordedFiles(workspace), before)) return 'a restore that was refused changed files'
      }
    }
    const { state } = snapshots
    return state.type === 'on' && state.problem === undefined ? undefined : JSON.stringify(state)
  } catch (error) {
    return (error as Error).message
  } finally {
    await session.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Makes the only commit unreachable and deletes its objects. The files stay. */
function prune(workspace: string): void {
  const git = (...command: string[]): void => {
    const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
    const user = ['-c', 'user.name=A', '-c', 'user.email=a@b.c']
    execFileSync('git', ['-C', workspace, ...user, ...command], { env, stdio: 'ignore' })
  }
  const first = execFileSync('git', ['-C', workspace, 'symbolic-ref', 'HEAD']).toString('utf8').trim()
  git('checkout', '--quiet', '--orphan', 'other')
  git('rm', '-r', '--quiet', '--cached', '.')
  git('commit', '--quiet', '--allow-empty', '--message', 'nothing')
  git('update-ref', '-d', first)
  git('reflog', 'expire', '--expire=now', '--all')
  git('gc', '--quiet', '--prune=now')
}

function recordedFiles(workspace: string): Files {
  return readFiles(workspace, (path) => !isLeftOut(path))
}
