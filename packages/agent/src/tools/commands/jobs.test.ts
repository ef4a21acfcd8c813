import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { Command, startCommand } from './command.ts'
import { dismissSupervisor } from './supervisor-process.ts'
import { Jobs, newJobId } from './jobs.ts'

let root: string
let session: string
const jobs = new Jobs()
beforeAll(() => void (root = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-jobs-test-')))))
beforeEach(() => void (session = mkdtempSync(join(root, 'session-'))))
afterAll(async () => {
  await dismissSupervisor()
  rmSync(root, { recursive: true })
})

describe('the folder of a command', () => {
  test('is created once, for its owner alone', async () => {
    const id = newJobId()
    const folder = await jobs.create(id, session)
    expect(folder).toBe(join(session, 'spool', id))
    await expect(jobs.create(id, session)).rejects.toThrow('EEXIST')
  })

  test('is removed when its result is durable', async () => {
    const command = await ended('echo 1')
    await jobs.removeSpool({ spool: command.spool, host: hostname() }, session)
    expect(readdirSync(join(session, 'spool'))).toEqual([])
  })

  test('stays while the command runs, if it is a job, or if it belongs to another machine', async () => {
    const job = await ended('echo 1')
    await jobs.keep(job)
    const foreign = await ended('echo 1')
    const running = await start('until [ -e stop ]; do sleep 0.02; done')
    await jobs.removeSpool({ spool: job.spool, host: hostname() }, session)
    await jobs.removeSpool({ spool: foreign.spool, host: 'elsewhere' }, session)
    await jobs.removeSpool({ spool: running.spool, host: hostname() }, session)
    expect([job, foreign, running].map(({ spool }) => existsSync(spool))).toEqual([true, true, true])
    await running.stop()
  })

  test('is the only thing that is ever removed', async () => {
    const precious = join(session, 'precious')
    mkdirSync(precious)
    for (const spool of [precious, session, `${session}/spool/../precious`, '', '/', 'job-1', `${session}/spool`]) {
      await jobs.removeSpool({ spool, host: hostname() }, session)
      await jobs.removeSpool({ spool, host: hostname() }, undefined)
    }
    expect(existsSync(precious)).toBe(true)
  })
})

describe('a job', () => {
  test('is found by its id, by any owner of the session', async () => {
    const command = await ended('echo 1')
    const id = await jobs.keep(command)
    expect((await new Jobs().find(id, session))?.spool).toBe(command.spool)
  })

  test('of another session is not found, nor anything that is not a job', async () => {
    const other = mkdtempSync(join(root, 'session-'))
    const command = await ended('echo 1')
    expect(await jobs.find(basename(command.spool), session)).toBeUndefined()
    const id = await jobs.keep(command)
    expect(await jobs.find(id, other)).toBeUndefined()
    expect(await jobs.find(id, undefined)).toBeUndefined()
    const traversal = [`../../${basename(session)}/spool/${id}`, `../spool/${id}`, `./${id}`, `${id}/`, `${id}\0`]
    for (const wrong of [...traversal, join(session, 'spool', id), '', '.', '..', id.toUpperCase()]) {
      expect(await jobs.find(wrong, session)).toBeUndefined()
      expect(await jobs.find(wrong, other)).toBeUndefined()
    }
  })

  test('of a session without a folder is known only there, and ends with it', async () => {
    const own = new Jobs()
    const id = newJobId()
    const spool = await own.create(id, undefined)
    const command = await startCommand({ ...options('sleep 100'), spool })
    await own.keep(command)
    expect((await own.find(id, undefined))?.spool).toBe(spool)
    expect(await new Jobs().find(id, undefined)).toBeUndefined()
    expect(own.folderOf({ spool }, undefined)).toBe(spool)
    await own.close()
    expect(existsSync(dirname(spool))).toBe(false)
    await own.close()
  })

  test('may be removed while the session ends', async () => {
    const own = new Jobs()
    const spool = await own.create(newJobId(), undefined)
    const forestall = vi.spyOn(Command.prototype, 'forestall').mockImplementationOnce(function (this: Command) {
      rmSync(spool, { recursive: true })
      return this.forestall()
    })
    await own.close()
    expect(forestall).toHaveBeenCalled()
    expect(existsSync(dirname(spool))).toBe(false)
  })
})

test('all running commands of a session can be stopped', async () => {
  const done = await ended('true')
  const running = [await start('sleep 600'), await start('sleep 601')]
  await jobs.keep(running[0]!)
  await jobs.stopAll(session)
  for (const command of running) expect(await command.state()).toMatchObject({ type: 'ended' })
  expect(await done.state()).toMatchObject({ type: 'ended' })
  await jobs.stopAll(join(session, 'missing'))
})

describe('the sweep', () => {
  test('removes what a crash left, and nothing that is still needed', async () => {
    const ago = (command: { spool: string }, hours: number): void => {
      const then = Date.now() / 1000 - hours * 60 * 60
      utimesSync(command.spool, then, then)
    }
    const settled = await ended('true')
    const open = await ended('true')
    const job = await ended('true')
    const oldJob = await ended('true')
    const running = await start('until [ -e stop ]; do sleep 0.02; done')
    const starting = { spool: await jobs.create(newJobId(), session) }
    const never = { spool: await jobs.create(newJobId(), session) }
    await jobs.keep(job)
    await jobs.keep(oldJob)
    for (const each of [oldJob, running]) ago(each, 25)
    ago(never, 2)
    mkdirSync(join(session, 'spool', 'not-ours'))

    await jobs.sweep(session, [{ spool: `/moved/since/${basename(open.spool)}` }])

    const kept = [open, job, running, starting].map(({ spool }) => basename(spool))
    expect(readdirSync(join(session, 'spool')).sort()).toEqual([...kept, 'not-ours'].sort())
    expect(existsSync(settled.spool)).toBe(false)
    writeFileSync(join(session, 'stop'), '')
    await running.wait()
  })

  test('of a session that never ran a command does nothing', async () => {
    await jobs.sweep(session, [])
    expect(readdirSync(session)).toEqual([])
  })
})

function options(command: string) {
  return { command, cwd: session, env: { PATH: process.env['PATH'] ?? '' }, deadlineMs: 60_000 }
}

async function start(command: string): Promise<Command> {
  return startCommand({ ...options(command), spool: await jobs.create(newJobId(), session) })
}

async function ended(command: string): Promise<Command> {
  const started = await start(command)
  await started.wait()
  return started
}
