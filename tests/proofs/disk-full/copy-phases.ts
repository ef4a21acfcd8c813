import { newId, type Session } from '@tapetree/session'
import { readRawLog } from '../writer/raw-log.ts'
import { started } from './append-phases.ts'
import type { Scene } from './scene.ts'

export async function fork(scene: Scene, fill: () => void): Promise<boolean> {
  return copy(scene, fill, { copy: async (source, id) => scene.store.forkFrom(source.id, { id }) })
}

export async function exportBranch(scene: Scene, fill: () => void): Promise<boolean> {
  return copy(scene, fill, {
    copy: async (source) => scene.store.open(await source.createBranchedSession(source.leafId as string)),
  })
}

export async function unpack(scene: Scene, fill: () => void): Promise<boolean> {
  const packed: Uint8Array[] = []
  return copy(scene, fill, {
    prepare: async (source) => {
      for await (const chunk of scene.store.pack(source.id)) packed.push(chunk)
    },
    copy: async () => scene.store.unpack(streamOf(packed)),
  })
}

interface Copying {
  prepare?: (source: Session) => Promise<void>
  copy: (source: Session, id: string) => Promise<Session>
}

/** A copy that does not fit is not there at all; the source is what it was; with room it is copied whole. */
async function copy(scene: Scene, fill: () => void, how: Copying): Promise<boolean> {
  const source = await started(scene, 12)
  await scene.append(source, 20_000)
  await scene.appendImage(source, 20_000)
  await how.prepare?.(source)
  fill()
  const id = newId()
  const first = await scene.mayFail('a copy', () => how.copy(source, id))
  const halfMade = first ? [] : scene.sessions().filter((session) => session !== source.id)
  if (halfMade.length > 0) scene.problems.push(`the copy failed and ${halfMade.join(', ')} is there`)
  scene.disk.makeRoom()
  const copied = first ?? (await how.copy(source, id))
  const messages = messagesIn(scene, copied.id)
  const expected = messagesIn(scene, source.id)
  if (messages !== expected) scene.problems.push(`of ${expected} messages ${messages} were copied`)
  await copied.close()
  await scene.check(copied.id)
  await scene.goOn(source)
  await scene.check(source.id)
  return !first
}

function messagesIn(scene: Scene, session: string): number {
  return readRawLog(scene.folderOf(session)).lines.filter(({ type }) => type === 'message').length
}

async function* streamOf(chunks: Uint8Array[]): AsyncIterable<Uint8Array> {
  yield* chunks
}
