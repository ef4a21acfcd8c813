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
    const both = [pairing.exchange(code, { name: 'phone' }), pairing.exchange(code, { name: 'thief' })] as const
    const [paired, refused] = await Promise.all(both)
    expect(paired).toMatchObject({ type: 'paired', record: { tenant: 'a', role: 'approve', name: 'phone' } })
    expect(refused).toEqual({ type: 'unknown' })
    expect(paired.type === 'paired' && tokens.verify(paired.token)).toMatchObject({ tenant: 'a' })
    expect(await pairing.exchange(code)).toEqual({ type: 'unknown' })
  })

  test('expires soon', async () => {
    const pairing = new Pairing(tokens, clock)
    const { code, expiresAt } = pairing.begin({ tenant: 'a', role: 'view' })
    expect(expiresAt - clock.now()).toBe(300_000)
    expect(pairing.preview(code)).toEqual({ role: 'view', expiresAt })
    clock.advance(300_000)
    expect(pairing.preview(code)).toBeUndefined()
    expect(await pairing.exchange(code)).toEqual({ type: 'unknown' })
  })

  test('can be read aloud and typed in any case, with mistaken letters and without dashes', async () => {
    const pairing = new Pairing(tokens, clock)
    for (const retype of [
      (code: string) => code.toLowerCase().replaceAll('-', ' '),
      (code: string) => code.replaceAll('-', '').replaceAll('0', 'o').replaceAll('1', 'l'),
    ]) {
      const { code } = pairing.begin({ tenant: 'a', role: 'view' })
      expect(code).toMatch(/^([0-9A-HJKMNP-TV-Z]{4}-){3}[0-9A-HJKMNP-TV-Z]{4}$/)
      expect(await pairing.exchange(retype(code))).toMatchObject({ type: 'paired' })
    }
  })

  test('gives fewer rights if asked, never more, and stays valid if more are asked for', async () => {
    const ladder = ['view', 'queue', 'approve', 'drive'] as const
    const pairing = new Pairing(tokens, clock)
    for (const [granted, grant] of ladder.entries()) {
      for (const [wanted, role] of ladder.entries()) {
        const { code } = pairing.begin({ tenant: 'a', role: grant })
        const outcome = await pairing.exchange(code, { role })
        if (wanted <= granted) expect(outcome).toMatchObject({ type: 'paired', record: { role } })
        else expect([outcome, pairing.preview(code)?.role]).toEqual([{ type: 'too-wide', grants: grant }, grant])
      }
    }
  })

  test('does not outlive the token that it grants', async () => {
    const pairing = new Pairing(tokens, clock)
    const { code, expiresAt } = pairing.begin({ tenant: 'a', role: 'view', expiresAt: clock.now() + 60_000 })
    expect(expiresAt - clock.now()).toBe(60_000)
    clock.advance(60_000)
    expect(await pairing.exchange(code)).toEqual({ type: 'unknown' })
  })

  test('beyond a hundred invalidates the oldest', async () => {
    const pairing = new Pairing(tokens, clock)
    const codes = Array.from({ length: 101 }, () => pairing.begin({ tenant: 'a', role: 'view' }).code)
    expect(await pairing.exchange(codes[0] ?? '')).toEqual({ type: 'unknown' })
    expect(await pairing.exchange(codes[1] ?? '')).toMatchObject({ type: 'paired' })
  })

  test('is in the fragment of its link, which no server sees', () => {
    const link = new URL(pairingLink('https://tape.example:8443', { code: 'secret', fingerprint: 'AA:BB' }))
    expect(link.origin + link.pathname + link.search).toBe('https://tape.example:8443/')
    expect(Object.fromEntries(new URLSearchParams(link.hash.slice(1)))).toEqual({
      pair: 'secret',
      fingerprint: 'AA:BB',
    })
    expect(link.href).toContain('#pair=secret&fingerprint=AA:BB')
    expect(pairingLink('https://tape.example/agents', { code: 'secret' })).toBe(
      'https://tape.example/agents/#pair=secret',
    )
  })
})
