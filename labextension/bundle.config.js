// What @jupyter/builder's own configuration lacks for a bundle that is the same wherever it is built: an entry's
// number would else come from the checkout's absolute path.
module.exports = {
  optimization: { moduleIds: 'natural', chunkIds: 'natural' }
};
