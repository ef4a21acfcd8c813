import type { TreeNode } from '@tapetree/session/view'
import { TreePanel } from '../panels/tree-panel.ts'
import type { OpenerContext } from './panel-place.ts'

export async function openTreePanel(context: OpenerContext & { isWanted: () => boolean }): Promise<void> {
  const { source, session, actions, remarks, appearance, open, close, onChange } = context
  const { handle } = session
  if (!handle) return remarks.warn('There is no session yet.')
  await actions.attempt('Reading the tree', async () => {
    let roots: readonly TreeNode[] = await source.tree(handle.sessionId)
    let seq = handle.transcript.seq
    const subagents = (await source.list({}).catch(() => [])).filter(
      ({ parentSession }) => parentSession === handle.sessionId,
    )
    const tree = (): ConstructorParameters<typeof TreePanel>[0]['tree'] => ({
      roots,
      leafId: handle.transcript.path.leafId,
      subagents,
    })
    const panel = new TreePanel({
      theme: appearance.theme,
      tree: tree(),
      onGo: (entryId, options) => {
        close()
        if (options.summarize)
          void actions.attempt('Moving there, with a summary', () => handle.navigate(entryId, options))
        else void context.onGo(entryId)
      },
      onLabel: (entryId, label) => {
        void actions.attempt('Labelling', () => handle.run('label', { entry_id: entryId, label }))
      },
      onFork: (entryId) => {
        close()
        void actions.fork(handle.sessionId, entryId)
      },
      onCompare: (entryId) => void openComparison(context, { sessionId: handle.sessionId, entryId }),
      onOpenSession: (sessionId) => {
        close()
        void actions.open(sessionId)
      },
      onClose: close,
    })
    let isReading = false
    const follow = (): void => {
      if (isReading || handle.transcript.seq === seq) return
      isReading = true
      seq = handle.transcript.seq
      void source
        .tree(handle.sessionId)
        .then((read) => {
          roots = read
          panel.update(tree())
        })
        .catch((error: unknown) => remarks.fail(error))
        .finally(() => {
          isReading = false
          onChange()
        })
    }
    if (context.isWanted()) open(panel, { follow })
  })
}

async function openComparison(
  { source, session, actions, appearance, open, close, onChange }: OpenerContext,
  { sessionId, entryId }: { sessionId: string; entryId: string },
): Promise<void> {
  const right = session.handle?.transcript.path.leafId
  if (right === null || right === undefined) return
  await actions.attempt('Comparing', async () => {
    const [{ ComparePanel }, comparison] = await Promise.all([
      import('../panels/compare-panel.ts'),
      source.compare(sessionId, { left: entryId, right }),
    ])
    open(new ComparePanel({ theme: appearance.theme, comparison, onChange, onClose: close }))
  })
}
