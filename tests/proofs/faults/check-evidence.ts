import { text, type SessionStore } from '@tapetree/session'
import { oldSessionId, tornTail, type Evidence } from './script.ts'

/** A look at files, whatever they are stored in. */
export interface Files {
  names(path: string): string[]
  content(path: string): Uint8Array | undefined
}

export interface Scene {
  /** A store without faults. */
  store: SessionStore
  folder: string
  files: Files
  evidence: Evidence
  /** After a crash temporary files may be left; after a fault they may not. */
  isCrashed: boolean
}

/** Everything that was acknowledged is there, once; what was refused is not; nothing is glued, torn or left over. */
export async function checkEvidence(scene: Scene): Promise<string[]> {
  const problems = [...checkRefusals(scene.evidence), ...checkNames(scene)]
  for (const sessionId of new Set(scene.evidence.sessions)) {
    if (scene.evidence.trashed.includes(sessionId)) continue
    try {
      for (const problem of await checkSession(scene, sessionId)) problems.push(`session ${sessionId}: ${problem}`)
    } catch (error) {
      problems.push(`session ${sessionId}: cannot be used: ${String(error)}`)
    }
  }
  return problems
}

/** `session-closed` comes from a session that the script could not open again. */
const expectedCodes = new Set(['storage-failed', 'read-only', 'session-closed'])

function checkRefusals({ refusals, stuck }: Evidence): string[] {
  return [
    ...stuck.map((step) => `${step} did not succeed after the fault was over`),
    ...refusals
      .filter(({ code }) => !expectedCodes.has(code))
      .map(({ step, code, message }) => `${step} was refused with ${code}: ${message}`),
  ]
}

function checkNames({ folder, files, evidence, isCrashed }: Scene): string[] {
  const problems: string[] = []
  const told = new Set(evidence.sessions)
  for (const name of files.names(folder)) {
    if (!name.startsWith('.') && !told.has(name))
      problems.push(`session ${name} is there, but no caller was told of it`)
  }
  for (const id of evidence.trashed) {
    if (!files.names(`${folder}/.trash`).includes(id)) problems.push(`session ${id} is not in the trash`)
  }
  const left = isCrashed ? [] : allNames(files, folder).filter((path) => /\.tmp$|\/\.new\/./.test(path))
  return [...problems, ...left.map((path) => `${path} was left over`)]
}

function allNames(files: Files, folder: string): string[] {
  return files.names(folder).flatMap((name) => [`${folder}/${name}`, ...allNames(files, `${folder}/${name}`)])
}

async function checkSession({ store, folder, files, evidence }: Scene, sessionId: string): Promise<string[]> {
  const problems: string[] = []
  const log = Buffer.from(files.content(`${folder}/${sessionId}/events.jsonl`) ?? new Uint8Array())
  const lines = log.toString().split('\n')
  if (lines.pop() !== '') problems.push('the log does not end with a newline')
  const counts = new Map<string, number>()
  for (const line of lines) {
    const id = (JSON.parse(line) as { id: string }).id
    counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  for (const [id, count] of counts) if (count > 1) problems.push(`line ${id} is there ${count} times`)
  for (const line of evidence.lines) {
    if (line.sessionId === sessionId && !counts.has(line.id)) problems.push(`acknowledged line ${line.id} is lost`)
  }
  for (const refused of evidence.refusedTexts) {
    if (log.includes(JSON.stringify(refused))) problems.push(`«${refused}» was refused and is there`)
  }
  for (const { sha256, content } of evidence.blobs.filter((blob) => blob.sessionId === sessionId)) {
    const found = files.content(`${folder}/${sessionId}/blobs/${sha256}`)
    if (found === undefined || Buffer.from(found).toString() !== content) problems.push(`blob ${sha256} is lost`)
  }
  if (sessionId === oldSessionId) problems.push(...checkTorn(files, `${folder}/${sessionId}`))
  return [...problems, ...(await goOn(store, sessionId))]
}

/** What was cut off is kept, whole; where cutting it off failed, every try has kept it. */
function checkTorn(files: Files, folder: string): string[] {
  const kept = files
    .names(folder)
    .filter((name) => name.includes('.torn-'))
    .map((name) => Buffer.from(files.content(`${folder}/${name}`) ?? new Uint8Array()).toString())
  const isKept = kept.length > 0 && kept.every((each) => each === tornTail)
  return isKept ? [] : [`of the torn bytes there is «${kept.join()}»`]
}

/** The session opens, is intact and takes another message. */
async function goOn(store: SessionStore, sessionId: string): Promise<string[]> {
  const report = await store.verify(sessionId)
  const isIntact = report.isIntact || (sessionId === oldSessionId && report.damageCount === 0)
  const session = await store.open(sessionId)
  const id = await session.appendMessage('user', [text('and on')])
  const isThere = session.leafId === id
  await session.close()
  return [
    ...(isIntact ? [] : [`verify says ${JSON.stringify(report)}`]),
    ...(isThere ? [] : ['a message after the fault is not the leaf']),
  ]
}
