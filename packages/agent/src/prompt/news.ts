import { environmentFacts, environmentText } from './environment-facts.ts'
import type { GitPlace } from './git-state.ts'

/** Says what has changed around the session since it last said so. */
export function newsTeller(
  place: Pick<GitPlace, 'cwd' | 'clock' | 'trustedRoot' | 'environment'>,
): () => Promise<string | undefined> {
  let told = ''
  return async () => {
    const news = environmentText(await environmentFacts(place))
    if (news === told) return undefined
    told = news
    return news
  }
}
