import type { SearchHit, SessionInfo } from '@tapetree/session'
import { SessionPicker, type SessionPickerData, type SessionScope } from '../panels/session-picker.ts'
import type { OpenerContext } from './panel-place.ts'

const listed = 500

export async function openSessionPicker(context: OpenerContext): Promise<void> {
  const { source, session, actions, remarks, appearance, folder, open, close, onChange } = context
  let sessions: readonly SessionInfo[] = []
  let scope: SessionScope = folder === undefined ? 'all' : 'folder'
  let isLoading = true
  let found: { text: string; hits: readonly SearchHit[] } | undefined
  const data = (): SessionPickerData => ({ sessions, scope, isLoading, ...(found && { found }) })
  const refresh = (): void => {
    panel.update(data())
    onChange()
  }
  const load = async (): Promise<void> => {
    isLoading = true
    refresh()
    const wanted = scope
    await actions.attempt('Loading sessions', async () => {
      const read = await source.list({
        limit: listed,
        ...(wanted === 'folder' && folder !== undefined && { cwd: folder }),
      })
      if (wanted === scope) sessions = read
    })
    isLoading = false
    refresh()
  }
  const change = (label: string, work: () => Promise<void>): void => {
    void actions.attempt(label, work).then(() => load())
  }
  const { handle } = session
  const panel = new SessionPicker({
    theme: appearance.theme,
    data: data(),
    ...(handle && { currentId: handle.sessionId }),
    onOpen: (sessionId, entryId) => {
      close()
      void actions.open(sessionId).then(() => entryId !== undefined && context.onShowEntry(entryId))
    },
    onScope: (wanted) => {
      scope = wanted
      void load()
    },
    onSearch: (text) => {
      void actions.attempt('Searching messages', async () => {
        found = { text, hits: await source.search(text) }
        refresh()
      })
    },
    onFork: (sessionId) => {
      close()
      void actions.fork(sessionId)
    },
    onRename: (id, name) => change('Naming', () => source.rename(id, name)),
    onArchive: (id) => change('Archiving', () => source.archive(id)),
    onDelete: (id) => change('Deleting', () => source.delete(id)),
    onClose: () => {
      close()
      if (session.handle) return
      const isTrue = { while: () => session.handle === undefined }
      remarks.say('No session is open. Type a message to start one, or /sessions to choose.', isTrue)
    },
  })
  open(panel, { onClosed: () => panel.close() })
  await load()
}
