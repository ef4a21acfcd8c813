import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { newId, type Session } from '@tapetree/session'
import { createOrOpen } from './append-phases.ts'
import type { Scene } from './scene.ts'

/** A bit of everything that writes, by callers who go on when they are told that something failed. */
export async function runEverything(scene: Scene): Promise<void> {
  const id = newId()
  const session = (await scene.mayFail('create', () => scene.store.create({ id }))) ?? (await startAgain(scene, id))
  await write(scene, session)
  await session.close()
  scene.disk.makeRoom()
  appendFileSync(join(scene.folderOf(id), 'events.jsonl'), '{"seq":99,"type":"message","id":"to')
  scene.expectTornFile()
  const again = (await scene.mayFail('open', () => scene.store.open(id))) ?? (await startAgain(scene, id))
  await write(scene, again)
  const fork = await scene.mayFail('fork', () => scene.store.forkFrom(id))
  await fork?.close()
  await scene.goOn(again)
  await scene.check(id)
  if (scene.sessions().length !== (fork ? 2 : 1)) scene.problems.push('a fork that failed is there')
}

async function startAgain(scene: Scene, id: string): Promise<Session> {
  scene.disk.makeRoom()
  return createOrOpen(scene, id)
}

async function write(scene: Scene, session: Session): Promise<void> {
  await scene.append(session, 100)
  await Promise.all([scene.append(session, 100), scene.append(session, 200_000), scene.append(session, 100)])
  await session.saveDerived()
  await scene.append(session, 5000)
}
