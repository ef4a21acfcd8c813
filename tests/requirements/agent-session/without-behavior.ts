import type { LinesWithoutBehavior } from '../requirement.ts'

/** Lines of agent-session.md that describe no behavior. */
export const withoutBehavior: LinesWithoutBehavior = {
  '1. Overview': { 'document summary': ['cd2a1a79'] },
  '4.1. Config & Options': { 'code syntax': ['2b4a401a', 'd0daecb5', '28b8c501', 'c894b672', 'dcfb35e5'] },
  '4.2. Events': { 'code syntax': ['dcfb35e5'] },
  '5. AgentSession API': { 'section divider': ['268b890d', '253649fc', '4c510802', '719b526b'] },
  '10. Usage Example': {
    'code syntax': [
      'd0daecb5',
      '28b8c501',
      '51284385',
      '4a829123',
      '2ce5a984',
      'aa7215d4',
      'e0d51d16',
      'e3bed7b2',
      '3cb26d7e',
    ],
  },
}
