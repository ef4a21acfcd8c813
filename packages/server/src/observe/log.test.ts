import { createRedactor } from '@tapetree/agent/settings'
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createLog, type Log } from './log.ts'

function kept(options: Parameters<typeof createLog>[0] = {}): { log: Log; lines: () => Record<string, unknown>[] } {
  const written: string[] = []
  const log = createLog({
    redactor: createRedactor(),
    ...options,
    destination: { write: (line) => written.push(line) },
  })
  return { log, lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>) }
}

const ownToken = (): string => `tapetree_${randomBytes(8).toString('hex')}_${randomBytes(32).toString('base64url')}`

describe('the log', () => {
  test('is one JSON object per line, with time and level as text', () => {
    const { log, lines } = kept()
    log.info({ session: 's' }, 'opened')
    log.debug('not wanted')
    expect(lines()).toEqual([{ level: 'info', time: expect.any(String), session: 's', msg: 'opened' }])
  })

  test('contains no token, cookie or key', () => {
    const token = ownToken()
    const key = ['sk', 'proj', randomBytes(24).toString('hex')].join('-')
    const { log, lines } = kept({ redactor: createRedactor({ secrets: { API_KEY: key } }) })
    const headers = { authorization: `Bearer ${token}`, cookie: `tapetree=${token}`, 'set-cookie': `a=${token}` }
    log.info({ headers, request: { headers: { 'sec-websocket-protocol': `tapetree.v1, bearer.${token}` } } }, 'request')
    log.warn({ token, code: 'pairing-code', nested: { token } }, `came with ${token} and ${key}`)
    log.error({ error: new Error(`refused ${token}`, { cause: new Error(`because of ${key}`) }) }, 'failed')
    const text = JSON.stringify(lines())
    for (const hidden of [token, key, token.slice(-43), 'pairing-code']) expect(text).not.toContain(hidden)
    expect(lines()).toHaveLength(3)
  })

  test('includes the error and its cause', () => {
    const { log, lines } = kept()
    log.error({ error: new Error('it broke', { cause: new Error('the disk') }) }, 'failed')
    expect(lines()).toMatchObject([
      { level: 'error', error: { name: 'Error', message: 'it broke', cause: { message: 'the disk' } } },
    ])
  })
})
