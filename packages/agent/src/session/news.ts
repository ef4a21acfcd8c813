import type { Clock } from '../clock.ts'
import { environmentFacts, environmentText } from './environment-facts.ts'

/** Says what has changed around the session since it last said so. */
export function newsTeller(place: {
  cwd: string
  clock: Clock
  isTrusted: boolean
}): () => Promise<string | undefined> {
  let told = ''
  return async () => {
    const news = environmentText(await environmentFacts(place))
    if (news === told) return undefined
    told = news
    return news
  }
}
