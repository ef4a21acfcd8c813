import { harmless, harmlessLine } from '../../text/harmless.ts'
import type { ChatServices, KeyProvider } from '../chat-services.ts'
import type { Ask, Question } from './rewinding.ts'

/** Asks for a text that is not shown. Undefined if the user leaves it. */
export type AskSecret = (question: { title: string; intro: readonly string[] }) => Promise<string | undefined>

export interface EnterKeyOptions {
  ask: Ask
  askSecret: AskSecret
  /** Shows a sentence. */
  say: (text: string) => void
  services: Pick<ChatServices, 'checkKey' | 'storeKey'>
  /** The providers that the key may be of. */
  providers: readonly KeyProvider[]
}

/** How keys of some providers begin. The longest beginning counts. */
const beginnings: readonly (readonly [start: string, provider: string])[] = [
  ['sk-ant-', 'anthropic'],
  ['sk-or-', 'openrouter'],
  ['sk-proj-', 'openai'],
  ['AIza', 'google'],
  ['gsk_', 'groq'],
  ['xai-', 'xai'],
  ['csk-', 'cerebras'],
]

/** Asks for a key, finds out which provider it is of, checks it there and stores it. Undefined if the user leaves it. */
export async function enterKey(options: EnterKeyOptions): Promise<KeyProvider | undefined> {
  const { ask, askSecret, say, services, providers } = options
  const [only, ...others] = providers
  const title = others.length === 0 && only ? `Key for ${harmlessLine(only.name)}` : 'Key'
  let problem: string | undefined
  for (;;) {
    const key = await askSecret({ title, intro: problem === undefined ? [] : [harmless(problem), ''] })
    if (key === undefined) return undefined
    const provider = others.length === 0 ? only : (recognized(key, providers) ?? (await ask(whose(providers))))
    if (!provider) return undefined
    const check = await services.checkKey(provider.id, key)
    problem = check?.message
    if (check && (check.isRefused || (await ask(unchecked(check.message))) !== 'store')) continue
    const kept = await services.storeKey(provider.id, key)
    say(`${check ? '' : `${harmlessLine(provider.name)} accepts the key. `}${kept}`)
    return provider
  }
}

function recognized(key: string, providers: readonly KeyProvider[]): KeyProvider | undefined {
  const [, id] = beginnings.find(([start]) => key.startsWith(start)) ?? []
  return providers.find((provider) => provider.id === id)
}

function whose(providers: readonly KeyProvider[]): Question<KeyProvider> {
  return {
    title: 'Which provider is the key of?',
    intro: [],
    choices: providers.map((provider) => ({ value: provider, label: harmlessLine(provider.name) })),
  }
}

function unchecked(message: string): Question<'again' | 'store'> {
  return {
    title: 'The key could not be checked',
    intro: [harmless(message), ''],
    choices: [
      { value: 'again', label: 'Try again' },
      { value: 'store', label: 'Store it unchecked' },
    ],
  }
}
