import { openFileStore } from '@tapetree/session/stores/file'

/** What a user is shown of every session, as text that can be compared. */
export interface Said {
  /** List, queue, context, labels, permissions and tree. */
  shown: string
  /** How many entries two searches find. */
  found: number
}

export async function whatItSays(folder: string, ids: readonly string[]): Promise<Said> {
  const store = openFileStore({ folder })
  const said: unknown[] = [await store.list()]
  const hits = [...(await store.search({ text: 'words' })), ...(await store.search({ text: 'goes' }))]
  for (const id of ids) {
    said.push(await store.queue(id).list())
    await using session = await store.open(id)
    said.push(
      await session.getContext(),
      session.leafId,
      [...session.getLabels()],
      session.name,
      session.pendingPermissions,
    )
    said.push(session.inbox, session.info, await session.getTree())
  }
  await store.close()
  return { shown: JSON.stringify(said), found: hits.length }
}
