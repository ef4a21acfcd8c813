import { describe, expect, test } from 'vitest'
import { clearedCookie, readCookie, tokenCookie, credentialOf, speaksOurs } from './credential.ts'
import type { Peer } from './peer.ts'

const peer: Peer = { address: '::1', scheme: 'http', host: 'localhost:1234', isOwner: false }
const secure: Peer = { ...peer, scheme: 'https', host: 'tape.example' }
const of = (headers: Record<string, string>): unknown => credentialOf((name) => headers[name], peer)

describe('a cookie', () => {
  test('cannot be read by scripts, sent by other sites or seen by other paths, and is secure if there is TLS', () => {
    expect(tokenCookie('abc', peer)).toBe('tapetree-1234=abc; Path=/; Max-Age=34560000; HttpOnly; SameSite=Strict')
    expect(tokenCookie('abc', secure, 60.9)).toBe(
      '__Host-tapetree=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure',
    )
    expect(tokenCookie('abc', { ...secure, prefix: '/agents' }, 60)).toBe(
      '__Secure-tapetree=abc; Path=/agents/; Max-Age=60; HttpOnly; SameSite=Strict; Secure',
    )
    expect(clearedCookie(peer)).toContain('tapetree-1234=; Path=/; Max-Age=0;')
  })

  test('of another port, or set without TLS, is ignored', () => {
    expect(readCookie('a=b; tapetree-1234=abc; c=d', peer)).toBe('abc')
    expect(readCookie('tapetree-9999=abc; xtapetree-1234=x', peer)).toBeUndefined()
    expect(readCookie('tapetree=abc', secure)).toBeUndefined()
    expect(readCookie('tapetree-1234=', peer)).toBeUndefined()
  })
})

describe('the credential of a request', () => {
  test('is the explicit one, before the cookie that a browser adds', () => {
    const cookie = 'tapetree-1234=c'
    expect(of({})).toEqual({ type: 'none' })
    expect(of({ cookie })).toEqual({ type: 'cookie', token: 'c' })
    expect(of({ cookie, authorization: 'Bearer t' })).toEqual({ type: 'token', token: 't' })
    expect(of({ cookie, authorization: 'Basic eDp5' })).toEqual({ type: 'token', token: '' })
    expect(of({ cookie, 'sec-websocket-protocol': 'tapetree.v1, bearer.w' })).toEqual({ type: 'token', token: 'w' })
    expect(of({ cookie, 'sec-websocket-protocol': 'tapetree.v1' })).toEqual({ type: 'cookie', token: 'c' })
  })

  test('offers our subprotocol only by its full name', () => {
    expect(speaksOurs('bearer.x,tapetree.v1')).toBe(true)
    expect(speaksOurs('tapetree.v10')).toBe(false)
    expect(speaksOurs(undefined)).toBe(false)
  })
})
