import { FakeClock } from '@tapetree/agent/testing'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Pairing, pairingLink } from './pairing.ts'
import { TokenStore } from './token-store.ts'

let folder: string
let tokens: TokenStore
const clock = new FakeClock()
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pairing-'))
  tokens = await TokenStore.open({ file: join(folder, 'tokens.json'), clock })
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('a pairing code', () => {
  test('gives one token, once', async () => {
    const pairing = new Pairing(tokens, clock)
    const { code } = pairing.begin({ tenant: 'a', role: 'approve' })
    const both = await Promise.all([pairing.exchange(code, 'phone'), pairing.exchange(code, 'thief')])
    expect(both.map((made) => made?.record)).toMatchObject([{ tenant: 'a', role: 'approve', name: 'phone' }, undefined])
    expect(tokens.verify(both[0]?.token ?? '')).toMatchObject({ tenant: 'a' })
    expect(await pairing.exchange(code)).toBeUndefined()
  })

  test('expires soon', async () => {
    const pairing = new Pairing(tokens, clock)
    const { code, expiresAt } = pairing.begin({ tenant: 'a', role: 'view' })
    expect(expiresAt - clock.now()).toBe(300_000)
    clock.advance(300_000)
    expect(await pairing.exchange(code)).toBeUndefined()
  })

  test('beyond a hundred invalidates the oldest', async () => {
    const pairing = new Pairing(tokens, clock)
    const codes = Array.from({ length: 101 }, () => pairing.begin({ tenant: 'a', role: 'view' }).code)
    expect(await pairing.exchange(codes[0] ?? '')).toBeUndefined()
    expect(await pairing.exchange(codes[1] ?? '')).toBeDefined()
  })

  test('is in the fragment of its link, which no server sees', () => {
    const link = new URL(pairingLink('https://tape.example:8443', { code: 'secret', fingerprint: 'AA:BB' }))
    expect(link.origin + link.pathname + link.search).toBe('https://tape.example:8443/')
    expect(Object.fromEntries(new URLSearchParams(link.hash.slice(1)))).toEqual({
      pair: 'secret',
      fingerprint: 'AA:BB',
    })
  })
})
