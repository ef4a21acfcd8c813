// Puts files back, or records them, and kills itself at one step. Run by `kills.ts`.
import { openFileStore } from '@tapetree/session/stores/file'
import { systemClock } from '@tapetree/session/util/wait'
import { join } from 'node:path'
import { WorkspaceSnapshots } from '../../../packages/agent/src/workspace/workspace-snapshots.ts'

const [folder = '', sessionId = '', target = '', killAt = '0'] = process.argv.slice(2)
const store = openFileStore({ folder: join(folder, 'sessions') })
const session = await store.open(sessionId)
let step = 0
const snapshots = new WorkspaceSnapshots({
  session,
  folder: join(folder, 'work'),
  storesFolder: join(folder, 'stores'),
  clock: systemClock,
  onRestoreStep: () => {
    if (++step === Number(killAt)) process.kill(process.pid, 'SIGKILL')
  },
})
if (session.openRestore) await snapshots.resumeRestore(target === 'undo' ? 'undo' : 'finish')
else {
  const prepared = await snapshots.prepare(target)
  const all = [...prepared.restored, ...prepared.kept, ...prepared.conflicts]
  await snapshots.restore(prepared, new Map(all.map(({ path }) => [path, 'take'])))
}
await snapshots.selfContained()
await session.close()
process.stdout.write(`${step}\n`)
