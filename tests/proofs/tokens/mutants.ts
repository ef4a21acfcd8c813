import { TokenStore } from '@tapetree/server'
import { Gatekeeper } from '../../../packages/server/src/auth/gatekeeper.ts'
import { UsageLimits } from '../../../packages/server/src/auth/limits.ts'
import { TokenHolders } from '../../../packages/server/src/auth/token-holders.ts'
import { RequestProblem } from '../../../packages/server/src/util/problem-error.ts'
import { replaceMember, type Mutant } from '../mutants/catch-mutant.ts'

/** Faults that this proof must find: each adds one and returns a function that removes it. */
export const mutants: Record<string, Mutant> = {
  'a server that does not read the file again': () =>
    replaceMember(TokenStore.prototype, 'refresh', () => () => undefined),

  'verified tokens in a cache': () => {
    const cache = new Map<string, ReturnType<TokenStore['verify']>>()
    return replaceMember(TokenStore.prototype, 'verify', (verify) => {
      return function (this: TokenStore, token) {
        const record = verify.call(this, token) ?? cache.get(token)
        cache.set(token, record)
        return record
      }
    })
  },

  'a create that ignores its creator': () =>
    replaceMember(TokenStore.prototype, 'create', (create) => {
      return function (this: TokenStore, newToken) {
        return create.call(this, newToken)
      }
    }),

  'a create by a revoked token': () =>
    replaceMember(TokenStore.prototype, 'create', (create) => {
      return function (this: TokenStore, newToken, options) {
        return create.call(this, newToken, options).catch((error: unknown) => {
          if (error instanceof RequestProblem && error.problem.type === 'creator-over')
            return create.call(this, newToken)
          throw error
        })
      }
    }),

  'wider tokens on request': () =>
    replaceMember(TokenStore.prototype, 'create', (create) => {
      return function (this: TokenStore, newToken, options) {
        return create.call(this, newToken, options).catch((error: unknown) => {
          if (error instanceof RequestProblem && error.problem.type === 'wider-than-creator') {
            return create.call(this, newToken)
          }
          throw error
        })
      }
    }),

  'a revocation that does nothing': () =>
    replaceMember(TokenStore.prototype, 'revoke', () => () => Promise.resolve(true)),

  'connections that outlive their token': () =>
    replaceMember(TokenHolders.prototype, 'hold', () => () => () => undefined),

  'connections that outlive the expiry': () =>
    replaceMember(TokenHolders.prototype, 'hold', (hold) => {
      return function (this: TokenHolders, { caller }, drop) {
        return hold.call(this, { caller }, drop)
      }
    }),

  'connections that end for no reason': () =>
    replaceMember(TokenHolders.prototype, 'hold', (hold) => {
      return function (this: TokenHolders, admitted, drop) {
        setTimeout(drop, 5)
        return hold.call(this, admitted, drop)
      }
    }),

  'folders that do not count': () =>
    replaceMember(UsageLimits.prototype, 'sessionsOf', (sessionsOf) => {
      return function (this: UsageLimits, { folder: _, ...caller }) {
        return sessionsOf.call(this, caller)
      }
    }),

  'roles that do not count': () =>
    replaceMember(Gatekeeper.prototype, 'admit', (admit) => {
      return function (this: Gatekeeper, visit, _needs, identified) {
        return admit.call(this, visit, 'any-role', identified)
      }
    }),

  'a valid token that is rejected now and then': () => {
    let count = 0
    return replaceMember(TokenStore.prototype, 'verify', (verify) => {
      return function (this: TokenStore, token) {
        return ++count % 50 === 0 ? undefined : verify.call(this, token)
      }
    })
  },
}
