// The builder bundles lib/version.js, one folder below the project's package.json.
export { version as VERSION } from '../package.json';
