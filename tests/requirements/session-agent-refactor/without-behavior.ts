import type { LinesWithoutBehavior } from '../requirement.ts'

/** Lines of session-agent-refactor.md that describe no behavior. */
export const withoutBehavior: LinesWithoutBehavior = {
  'Session Agent Refactoring: Technical Design': { 'document summary': ['263f2952', 'a12a1a98', 'ec1b9821'] },
  '1. Problem Statement': { 'old code': ['19ee87f1', '8736f9a2', '507c32a7', 'e3e2b712', '14f0ca3b', '28c8dc92'] },
  'Current `Run()` Responsibilities (Count: 9)': { 'old code': ['e75b48e6', '5f3156d4'] },
  '2. Goals': { 'old code': ['5951e0aa'], 'table header': ['7f2fe7c4'], 'work figure': ['880fde17'] },
  'Non-Goals': { 'non goal': ['f821b503', '92744bb2', '8f92d8b0'] },
  '`RunState` - Explicit State Container': { 'old code': ['4c0421a1', '51fa6e23'], 'stated benefit': ['34edb1b4'] },
  '`StepHandler` - Callback Router': { 'file name': ['74ca779c'], 'old code': ['7d158db7'] },
  '`StreamRunner` - Orchestration': { 'file name': ['e3a046ed'], 'old code': ['b31f22f9', 'd2221c98'] },
  '3.3 Refactored `sessionAgent.Run()`': { 'work figure': ['c7019ddf'] },
  'Phase 1: Extract Without Changing Behavior (Low Risk)': {
    'work plan': ['88e881ec', '8ee5b4be', 'a429f8c1', '43b430e1', 'edc542d0', '2cb192d4', '9c5b644e', 'a66c4bcc'],
  },
  'Phase 2: Extract `StreamRunner` (Medium Risk)': { 'work plan': ['94cb146d', '25c9582b', '3467f7d2', '4dd92c84'] },
  'Phase 3: Refactor `Run()` Structure (Medium Risk)': { 'work plan': ['b048a649', '44095614', '3024db68'] },
  'Phase 4: Re-record Test Cassettes (Required)': { 'work plan': ['920067f8', '09bfb23d', 'bd6d8686'] },
  '5.1 `StepHandler` Implementation': {
    'code syntax': [
      'dc49c768',
      'd0daecb5',
      '28b8c501',
      'ae55c5b4',
      '11e986f8',
      '93bee724',
      '73762c0a',
      '72eebbc3',
      '14351a52',
      '241beb47',
      '491d8d6b',
    ],
    'file name': ['74ca779c'],
  },
  '5.2 Testing Strategy': {
    'code syntax': ['dc49c768', 'd0daecb5', '11e986f8', '491d8d6b', '878d328a', 'c8b61ec0', '53adf82a', 'd02aeaac'],
  },
  '6. Risk Assessment': { 'table header': ['470a1cb3'], 'work plan': ['0a633efe', '7e1c30f3', '77689163', '8d3ea1f7'] },
  '7. Success Criteria': { 'work figure': ['a0a3eaf9', '09c88c47', 'bc448028', 'ffcbb761'] },
  '8. Open Questions': {
    'design question': ['c973af11', '1b2b773f', '5da0d3f2', '28fc4e66', '30c6d5d3', '7636564b', '5d819aed', '0d7a8fa9'],
  },
  '9. Timeline Estimate': {
    'table header': ['2879ea59'],
    'work plan': ['679bf6e7', 'a6231ad0', '628fe41e', 'c19cbbcd', '4f1f271a', '1d6bb19d'],
  },
  '10. Appendix: Current vs Proposed Line Counts': {
    'table header': ['305f6c2d'],
    'work figure': ['05c069c0', 'd9948a4d', 'fc11ca3e', 'dc2a07a8', '8de90225', 'd19cff4b', '09ce7c6b'],
  },
  ScriptedAgent: { 'file name': ['15392fb4'] },
  'Golden Tests': { 'file name': ['2dcd7139'], 'table header': ['e8ffd3e5'] },
}
