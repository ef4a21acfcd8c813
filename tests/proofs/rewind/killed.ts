// Goes back with the files and the conversation, and kills itself at one step. Run by `kills.ts`.
import { openFileStore } from '@tapetree/session/stores/file'
import { systemClock } from '@tapetree/session/util/wait'
import { join } from 'node:path'
import { rewind } from '../../../packages/agent/src/agent/rewind.ts'
import { WorkspaceSnapshots } from '../../../packages/agent/src/workspace/workspace-snapshots.ts'
import { replaceMember } from '../mutants/catch-mutant.ts'
import { beforeLine, killMutants } from './mutants.ts'

const [folder = '', sessionId = '', target = '', killAt = '0', fault = ''] = process.argv.slice(2)
const store = openFileStore({ folder: join(folder, 'sessions') })
const session = await store.open(sessionId)
killMutants[fault]?.(session)
const steps: string[] = []
const takeStep = (step: string): void => {
  if (steps.push(step) === Number(killAt)) process.kill(process.pid, 'SIGKILL')
}
// The moments between two durable lines are steps too.
replaceMember(session, 'append', (append) => (draft, context) => {
  takeStep(`${beforeLine}${draft.type}`)
  return append.call(session, draft, context)
})
replaceMember(session, 'branch', (branch) => (entryId, options) => {
  takeStep(`${beforeLine}leaf`)
  return branch.call(session, entryId, options)
})
const files = new WorkspaceSnapshots({
  session,
  folder: join(folder, 'work'),
  storesFolder: join(folder, 'stores'),
  clock: systemClock,
  onRestoreStep: takeStep,
})
await rewind({ entryId: target, conflicts: 'take' }, { session, files })
await files.selfContained()
await session.close()
process.stdout.write(JSON.stringify(steps))
