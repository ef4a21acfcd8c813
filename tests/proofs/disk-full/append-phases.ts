import { newId, SessionError, type Session } from '@tapetree/session'
import type { Scene } from './scene.ts'

/** A session with a few messages; where its last page ends is left to chance. */
export async function started(scene: Scene, count = 4): Promise<Session> {
  const session = await scene.store.create()
  for (let each = 0; each < count; each++) await scene.append(session, Math.floor(scene.random() * 2000))
  return session
}

export async function create(scene: Scene, fill: () => void): Promise<boolean> {
  const ids = [newId(), newId()] as const
  fill()
  const plain = await scene.mayFail('create', () => scene.store.create({ id: ids[0], cwd: '/proof' }))
  if (!plain && scene.sessions().includes(ids[0])) scene.problems.push('create failed and the session is there')
  const named = await scene.mayFail('create with a name', () => scene.store.create({ id: ids[1], name: 'named' }))
  const made = [plain, named].filter((each) => each !== undefined)
  // Without room for its lock a session opens all the same, and says that it cannot be written.
  const isFull = made.length < 2 || made.some((session) => session.readOnlyReason !== undefined)
  scene.disk.makeRoom()
  for (const session of made) if (session.readOnlyReason !== undefined) await session.close()
  for (const id of ids) {
    const session = await createOrOpen(scene, id)
    await scene.goOn(session)
    await scene.check(id)
  }
  return isFull
}

export async function createOrOpen(scene: Scene, id: string): Promise<Session> {
  try {
    return await scene.store.create({ id })
  } catch (error) {
    if (error instanceof SessionError && error.code === 'session-exists') return scene.store.open(id)
    throw error
  }
}

export async function appendSmall(scene: Scene, fill: () => void): Promise<boolean> {
  return append(scene, fill, async (session) => {
    let isStored = true
    for (let count = 0; isStored && count < 60; count++) isStored = await scene.append(session, 250)
    if (!isStored) scene.expectFailure(session)
    return isStored
  })
}

/** Just below what is moved to a blob, by bytes. */
export async function appendLong(scene: Scene, fill: () => void): Promise<boolean> {
  return append(scene, fill, (session) => appendOnce(scene, session, 100_000))
}

export async function appendLargeValue(scene: Scene, fill: () => void): Promise<boolean> {
  return append(scene, fill, (session) => appendOnce(scene, session, 200_000))
}

/** What was handed over before a large value that fails is stored, what comes behind it is not, and the path stays whole. */
export async function appendMixed(scene: Scene, fill: () => void): Promise<boolean> {
  return append(scene, fill, async (session) => {
    const outcomes: boolean[] = []
    const keep = async (length: number): Promise<void> => void outcomes.push(await scene.append(session, length))
    const first = [keep(100), keep(200_000), keep(100), keep(20_000), keep(100)]
    await first[1]
    // Somebody who was told of the failure tries again at once, while others are still on their way.
    await Promise.all([...first, keep(100), keep(20_000), keep(100)])
    await Promise.all([keep(100), keep(100)])
    return outcomes.every(Boolean)
  })
}

/** The first who is told makes room, and all try again at once, most of them behind others that are about to be rejected. */
export async function tryAgain(scene: Scene, fill: () => void): Promise<boolean> {
  return append(scene, fill, async (session) => {
    let rejections = 0
    const keep = async (length: number): Promise<void> => {
      for (let tries = 0; tries < 50; tries++) {
        if (await scene.append(session, length)) return
        rejections++
        scene.disk.makeRoom()
      }
      scene.problems.push('there is room, and an append was rejected 50 times')
    }
    await Promise.all([200_000, 100, 100, 200_001, 100, 100].map(keep))
    return rejections === 0
  })
}

/** More lines than go into one batch. */
export async function groupCommit(scene: Scene, fill: () => void): Promise<boolean> {
  return append(scene, fill, async (session) => {
    const outcomes = await Promise.all(Array.from({ length: 300 }, async () => scene.append(session, 150)))
    if (outcomes.includes(false)) scene.expectFailure(session)
    return !outcomes.includes(false)
  })
}

async function appendOnce(scene: Scene, session: Session, length: number): Promise<boolean> {
  const isStored = await scene.append(session, length)
  if (!isStored) scene.expectFailure(session)
  return isStored
}

async function append(scene: Scene, fill: () => void, work: (session: Session) => Promise<boolean>): Promise<boolean> {
  const session = await started(scene)
  fill()
  const isStored = await work(session)
  await scene.goOn(session)
  await scene.check(session.id)
  return !isStored
}
